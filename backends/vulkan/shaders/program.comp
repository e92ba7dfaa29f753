// A template for programs (sdk/program.h) of f32 and bool: program.cpp writes the calls of a program into `body`, after what it
// finds by their names here. Parameters are const, so that calls pass values and not variables.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "elementwise.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Space {
  uint count, rank, zero, unused;
  uint divisor[8], magic[8], shift[8];  // the innermost axis first
  int stride[32][8];                    // of outputs, then inputs, in elements
  uint64_t base[32];                    // 0: an immediate, whose bits are in value
  uint64_t value[32];
};
layout(push_constant) uniform Push { Space space; };
REFERENCE(Element, float, 4)
REFERENCE(Bool, uint8_t, 1)

uint place[8];
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

float load_f32(const uint k) { return space.base[k] != 0 ? Element(address_of(k, 4)).v : f32_of_bits(space.value[k]); }
bool load_bool(const uint k) {
  return (space.base[k] != 0 ? Bool(address_of(k, 1)).v : uint8_t(space.value[k])) != uint8_t(0);
}
void store_f32(const uint k, const float v) { Element(address_of(k, 4)).v = v; }
void store_bool(const uint k, const bool v) { Bool(address_of(k, 1)).v = uint8_t(v); }

#define FUNCTIONS(F)                                                                                             \
  F(NEG) F(ABS) F(SIGN) F(SQRT) F(EXP) F(LOG) F(TANH) F(RELU) F(SIGMOID) F(SILU) F(GELU_TANH) F(ADD) F(SUB) F(MUL) \
  F(DIV) F(POW) F(FMOD) F(MAXIMUM) F(MINIMUM) F(RELU_BACKWARD) F(SIGMOID_BACKWARD) F(TANH_BACKWARD) F(SILU_BACKWARD)     \
  F(GELU_TANH_BACKWARD)
#define DEFINE(name) \
  float op_##name(const float a, const float b) { return applied(OP_##name, a, b); }
FUNCTIONS(DEFINE)
bool op_EQ(const float a, const float b) { return equal(a, b); }
bool op_NE(const float a, const float b) { return !equal(a, b); }
bool op_LT(const float a, const float b) { return less(a, b); }
bool op_LE(const float a, const float b) { return less(a, b) || equal(a, b); }
float op_WHERE(const bool condition, const float a, const float b) { return condition ? a : b; }
// No constant 0 for the driver to see: lavapipe takes its product with a negative number for 0, and not for -0.
float op_CAST(const bool x) { return uintBitsToFloat(x ? 0x3f800000u : space.zero); }

// Calls everything, because a compiler leaves out what nothing calls. A program's calls take the place of these.
#define CALL(name) store_f32(0, op_##name(a, b));
void body() {
  float a = load_f32(0), b = load_f32(1);
  bool c = load_bool(0);
  FUNCTIONS(CALL)
  store_bool(0, op_EQ(a, b) || op_NE(a, b) || op_LT(a, b) || op_LE(a, b));
  store_f32(0, op_WHERE(c, a, op_CAST(c)));
}

void main() {
  for (uint i = gl_GlobalInvocationID.x; i < space.count; i += gl_NumWorkGroups.x * GROUP) {
    locate(i);
    body();
  }
}
