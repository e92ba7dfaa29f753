// SUM, MAX, MIN and ARGMAX. T is the input's type; sums are computed in the type A of ASIZE bytes. MODE 0: an invocation
// computes an output. MODE 1: a workgroup computes an output, or stores the partial result of a chunk of it. A further
// dispatch with MODE 2 reduces partial results. This keeps the loops of an invocation short: drivers stop long loops without
// an error.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Fold {
  uint64_t to, from, partials, places;  // partial results, written in MODE 1; places: their indices, for ARGMAX
  uint kept, reduced, kept_rank, reduced_rank, accumulates, span, chunks, unused;
  uint kept_extent[8], reduced_extent[8];
  int64_t kept_to[8], kept_from[8], reduced_from[8];
};
layout(push_constant) uniform Push { Fold fold; };
REFERENCE(Element, T, SIZE)
REFERENCE(Result, A, ASIZE)
REFERENCE(Index, int64_t, 8)
REFERENCE(Place, uint, 4)
#if defined(U8)
bool less(uint8_t a, uint8_t b) { return a < b; }
#endif

#include "folds.glsl"
uint folding() { return OP; }

// Returns element i of a line, in row-major order of the reduced axes.
Item item(uint64_t line, uint i) {
  if (MODE == 2) {
    uint64_t at = line + i;
    return Item(Result(fold.partials + at * ASIZE).v, OP == OP_ARGMAX ? Place(fold.places + at * 4).v : i);
  }
  int64_t offset = 0;
  uint rest = i;
  for (uint d = 0; d < fold.reduced_rank; ++d) {
    uint above = d + 1 < fold.reduced_rank ? rest / fold.reduced_extent[d] : 0;
    offset += int64_t(rest - above * fold.reduced_extent[d]) * fold.reduced_from[d];
    rest = above;
  }
  A value = A(Element(line + uint64_t(offset * SIZE)).v);
  return Item(is_sum() ? flushed(value) : value, i);
}

// Finds the addresses of line i and of its output. In MODE 2, `line` is an index of a partial result instead.
void locate(uint i, out uint64_t to, out uint64_t line) {
  int64_t a = 0, b = 0;
  uint rest = i;
  for (uint d = 0; d < fold.kept_rank; ++d) {
    uint above = d + 1 < fold.kept_rank ? rest / fold.kept_extent[d] : 0;
    int64_t inside = int64_t(rest - above * fold.kept_extent[d]);
    a += inside * fold.kept_to[d];
    b += inside * fold.kept_from[d];
    rest = above;
  }
  to = fold.to + uint64_t(a * (OP == OP_ARGMAX ? 8 : ASIZE));
  line = MODE == 2 ? uint64_t(i) * fold.reduced : fold.from + uint64_t(b * SIZE);
}

void store(uint64_t to, Item x) {
  if (OP == OP_ARGMAX) Index(to).v = int64_t(x.place);
  else if (is_sum() && fold.accumulates != 0) Result(to).v = flushed(flushed(Result(to).v) + x.value);
  else Result(to).v = x.value;
}

void fold_line(uint i) {
  uint64_t to, line;
  locate(i, to, line);
  store(to, folded(line, 0, fold.reduced, false));
}

void fold_chunk(uint i) {
  uint64_t to, line;
  locate(i / fold.chunks, to, line);
  uint begin = i % fold.chunks * fold.span;
  Item x = folded(line, begin, min(begin + fold.span, fold.reduced), true);
  if (gl_LocalInvocationIndex != 0) return;
  if (fold.chunks == 1) {
    store(to, x);
    return;
  }
  Result(fold.partials + uint64_t(i) * ASIZE).v = x.value;
  if (OP == OP_ARGMAX) Place(fold.places + uint64_t(i) * 4).v = x.place;
}

void main() {
  if (MODE == 0) {
    for (uint i = gl_GlobalInvocationID.x; i < fold.kept; i += gl_NumWorkGroups.x * GROUP) fold_line(i);
  } else {
    for (uint i = gl_WorkGroupID.x; i < fold.kept * fold.chunks; i += gl_NumWorkGroups.x) fold_chunk(i);
  }
}
