// Ops on lines: a workgroup computes a line. parameters.hpp has the same struct.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Lines {
  uint64_t base[6];
  uint lines, extent, rank, unused;
  uint outer[8];             // extents of the axes besides the line's, the innermost first
  int64_t stride[6][8];      // of each operand along them, in elements
  int64_t along[6];          // and along the line
  uint64_t failed;
  uint ordinal;
  float epsilon;
};
layout(push_constant) uniform Push { Lines p; };
REFERENCE(Element, float, 4)
REFERENCE(Index, int64_t, 8)
#include "failure.glsl"

shared float shares[GROUP];
// One element longer than the array of the parameters: glslc gives arrays of one length one type, whose layout belongs to
// buffers alone.
shared uint64_t starts[7];

uint me() { return gl_LocalInvocationIndex; }

// The offset in elements at which an operand's part of a line begins.
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

// Called by all invocations at the beginning of a line.
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

// The sum, or the largest, of what all invocations give; every one gets it.
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
