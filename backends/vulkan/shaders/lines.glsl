// Ops on lines: a workgroup computes a line. parameters.hpp declares the same struct.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Lines {
  uint64_t base[6];
  uint lines, extent, rank, unused;
  uint outer[8];             // extents of the axes besides the line's, the innermost first
  int64_t stride[6][8];      // the strides of each operand along these axes, in elements
  int64_t along[6];          // the stride of each operand along the line, in elements
  uint64_t failed;
  uint ordinal;
  float epsilon;
};
layout(push_constant) uniform Push { Lines p; };
REFERENCE(Element, float, 4)
REFERENCE(Index, int64_t, 8)
#include "failure.glsl"

shared float shares[GROUP];
// One element longer than the array of the parameters: glslc gives arrays of equal length a single type, and the layout of
// this type is valid in buffers only.
shared uint64_t starts[7];

uint me() { return gl_LocalInvocationIndex; }

// Returns the offset of the first element of an operand's line, in elements.
int64_t start_of(uint operand, uint line) {
  int64_t offset = 0;
  uint rest = line;
  for (uint d = 0; d < p.rank; ++d) {
    uint above = d + 1 < p.rank ? rest / p.outer[d] : 0;
    offset += int64_t(rest - above * p.outer[d]) * p.stride[operand][d];
    rest = above;
  }
  return offset;
}

// All invocations call this at the beginning of a line.
void enter(uint line) {
  barrier();
  if (me() < 6) starts[me()] = p.base[me()] + uint64_t(start_of(me(), line) * 4);
  barrier();
}

float at(uint operand, uint i) {
  return flushed(Element(starts[operand] + uint64_t(int64_t(i) * p.along[operand] * 4)).v);
}
void put(uint operand, uint i, float value) {
  Element(starts[operand] + uint64_t(int64_t(i) * p.along[operand] * 4)).v = flushed(value);
}

// Combines the numbers of all invocations to their sum or their maximum. Every invocation gets the result.
float joined(float a, float b, bool is_sum) {
  if (is_sum) {
    precise float sum = a + b;
    return sum;
  }
  return larger(a, b);
}
float over_group(float share, bool is_sum) {
  shares[me()] = share;
  barrier();
  for (uint step = GROUP / 2; step > 0; step >>= 1) {
    if (me() < step) shares[me()] = joined(shares[me()], shares[me() + step], is_sum);
    barrier();
  }
  float all = shares[0];
  barrier();
  return all;
}
float sum_of_group(float share) { return over_group(share, true); }
float largest_of_group(float share) { return over_group(share, false); }
