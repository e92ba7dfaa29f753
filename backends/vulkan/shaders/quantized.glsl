// A weight (n, k) of 2, 4 or 8 bits an element. The product has no batch, and batch_extent holds the weight's layout instead.
// Memory is read in words of 32 bits, because devices may lack access to bytes.
#include "halves.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Word { uint v; };

uint bits_of_code() { return product.batch_extent[0]; }
uint groups_of_row() { return product.batch_extent[1]; }
uint group() { return product.batch_extent[2]; }  // elements
bool has_halves() { return product.batch_extent[3] != 0; }
bool has_minima() { return product.batch_extent[4] != 0; }

uint word_of(uint row, uint i) { return Word(product.base[2] + uint64_t(row) * (product.k * bits_of_code() / 8) + i * 4).v; }

// Half of a word may lie beyond the scales, but not beyond their memory, whose size is a multiple of a word.
float scale_at(uint64_t place) {
  if (!has_halves()) return flushed(uintBitsToFloat(Word(product.base[3] + place * 4).v));
  uint64_t address = product.base[3] + place * 2;
  uint word = Word(address & ~uint64_t(3)).v;
  return flushed(f32_of_f16((address & 2) != 0 ? word >> 16 : word & 0xffffu));
}

// The scale and the minimum of the group of element j of a row.
vec2 affine_of(uint row, uint j) {
  uint64_t place = uint64_t(row) * groups_of_row() + j / group();
  if (has_minima()) return vec2(scale_at(place * 2), scale_at(place * 2 + 1));
  float scale = scale_at(place);
  return vec2(scale, -scale * float(1u << (bits_of_code() - 1)));
}
