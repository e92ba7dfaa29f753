// What the templates of fusions share: operands of f32 and bool at a place of the space, and a function for each op.
// Parameters are const, so that calls pass values instead of variables. A template defines `space` and includes this.
REFERENCE(Bool, uint8_t, 1)
REFERENCE(Element, float, 4)
uint place[9];  // longer than the arrays of the parameters, as in lines.glsl
void locate(const uint i) {
  uint rest = i;
  for (uint d = 0; d < space.rank; ++d) {
    uint high, low;
    umulExtended(rest, space.magic[d], high, low);
    uint above = d + 1 < space.rank ? (high + rest) >> space.shift[d] : 0;
    place[d] = rest - above * space.divisor[d];
    rest = above;
  }
}
uint64_t address_of(const uint k, const uint size) {
  int offset = 0;
  for (uint d = 0; d < space.rank; ++d) offset += int(place[d]) * space.stride[k][d];
  return space.base[k] + uint64_t(int64_t(offset) * size);
}

// For an immediate, a device reads the parameters, as in grid.glsl.
bool is_stored(const uint k) { return space.base[k] != 0; }
uint64_t readable(const uint k, const uint size) { return is_stored(k) ? address_of(k, size) : uint64_t(space); }
float load_f32(const uint k) { return chosen(is_stored(k), Element(readable(k, 4)).v, f32_of_bits(space.value[k])); }
bool load_bool(const uint k) {
  return chosen(is_stored(k), Bool(readable(k, 1)).v, uint8_t(space.value[k])) != uint8_t(0);
}
void store_f32(const uint k, const float v) { Element(address_of(k, 4)).v = v; }
void store_bool(const uint k, const bool v) { Bool(address_of(k, 1)).v = uint8_t(v); }

// FUNCTIONS(F) expands to F(name) for each op of elementwise.glsl: shaders.cmake defines it.
#define DEFINE(name) \
  float op_##name(const float a, const float b) { return applied(OP_##name, a, b); }
FUNCTIONS(DEFINE)
bool op_EQ(const float a, const float b) { return equal(a, b); }
bool op_NE(const float a, const float b) { return !equal(a, b); }
bool op_LT(const float a, const float b) { return less(a, b); }
bool op_LE(const float a, const float b) { return less(a, b) || equal(a, b); }
float op_WHERE(const bool condition, const float a, const float b) { return condition ? a : b; }
// Reads 0 from the parameters: lavapipe simplifies the product of a constant 0 and a negative number to 0 instead of -0.
float op_CAST(const bool x) { return uintBitsToFloat(x ? 0x3f800000u : space.zero); }
