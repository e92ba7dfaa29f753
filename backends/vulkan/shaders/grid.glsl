// The parameters of shaders that walk a box of elements; parameters.hpp declares the same struct. The innermost axis comes
// first.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Grid {
  uint count, rank;
  uint divisor[8], magic[8], shift[8];
  int stride[7][8];
  uint64_t base[7];   // 0: an immediate, whose bits are in value
  uint64_t value[7];
  int64_t axis_extent, axis_stride, steps, stride1, stride2;
  uint64_t failed;    // the word of the stream that records an index out of range
  uint ordinal, flags;
  float number[8];
};
layout(push_constant) uniform Push { Grid grid; };

uint first_place() { return gl_GlobalInvocationID.x; }
uint all_places() { return gl_NumWorkGroups.x * GROUP; }

// Division by a divisor that the host prepares: divider.hpp.
uint quotient(uint n, uint d) {
  uint high, low;
  umulExtended(n, grid.magic[d], high, low);
  return (high + n) >> grid.shift[d];
}

// Declares `at`, the offsets in elements of N operands at place i. Most boxes have one axis.
#define LOCATE(N)                                                                                    \
  int at[N];                                                                                         \
  for (int k = 0; k < N; ++k) at[k] = int(i) * grid.stride[k][0];                                    \
  if (grid.rank > 1) {                                                                               \
    for (int k = 0; k < N; ++k) at[k] = 0;                                                           \
    uint rest = i;                                                                                   \
    for (uint d = 0; d < grid.rank; ++d) {                                                           \
      uint above = d + 1 < grid.rank ? quotient(rest, d) : 0;                                        \
      int inside = int(rest - above * grid.divisor[d]);                                              \
      for (int k = 0; k < N; ++k) at[k] += inside * grid.stride[k][d];                               \
      rest = above;                                                                                  \
    }                                                                                                \
  }
#define ADDRESS(k, size) (grid.base[k] + uint64_t(int64_t(at[k]) * size))
// LOAD returns an element or the immediate. A device may read an address even if a condition excludes the read, so the
// address of an immediate is that of the parameters.
bool is_stored(uint k) { return grid.base[k] != 0; }
uint64_t readable(uint k, uint64_t address) { return is_stored(k) ? address : uint64_t(grid); }
#define LOAD_AT(Ref, k, address, of_bits) chosen(is_stored(k), Ref(readable(k, address)).v, of_bits(grid.value[k]))
#define LOAD(Ref, k, size, of_bits) LOAD_AT(Ref, k, ADDRESS(k, size), of_bits)

#include "failure.glsl"
void report_index() { report_failure(grid.failed, grid.ordinal); }
