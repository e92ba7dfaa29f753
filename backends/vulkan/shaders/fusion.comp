// The template of fusions (sdk/fusion.h) of f32 and bool. fusion_module.cpp finds functions by their names here, and
// replaces the bodies of `body`, `results` and `argument_0` to `argument_7` by calls of a fusion. The reductions of a fusion
// reduce rows, which are the innermost axes here; without reductions each element is a row. MODE 0: no reductions. MODE 1: an invocation computes a row. MODE 2: a workgroup
// computes a row, in one or several passes.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "elementwise.glsl"

#include "space.glsl"
layout(push_constant) uniform Push { Space space; };
#include "fusion.glsl"

// Values of space.pass.
const uint OF_ROWS = 0;
const uint OF_CHUNKS = 1;    // each chunk of a row stores partial results
const uint OF_PARTIALS = 2;

// The results of the reductions of this row.
float reduced[8];
float result_of(const uint r) { return reduced[r]; }

// Returns the operand of reduction r at this place.
#define ARGUMENT(r) \
  float argument_##r() { return load_f32(r); }
ARGUMENT(0) ARGUMENT(1) ARGUMENT(2) ARGUMENT(3) ARGUMENT(4) ARGUMENT(5) ARGUMENT(6) ARGUMENT(7)
float argument(uint r) {
  switch (r) {
    case 0: return argument_0();
    case 1: return argument_1();
    case 2: return argument_2();
    case 3: return argument_3();
    case 4: return argument_4();
    case 5: return argument_5();
    case 6: return argument_6();
    default: return argument_7();
  }
}

// `body` computes and stores the elements of the outputs at this place; `results` does so for the outputs with one element
// per row. Together they call all functions, because a compiler removes functions without calls. The calls of a fusion
// replace these calls.
#define CALL(name) store_f32(0, op_##name(a, b));
void body() {
  float a = load_f32(0), b = load_f32(1);
  bool c = load_bool(0);
  FUNCTIONS(CALL)
  store_bool(0, op_EQ(a, b) || op_NE(a, b) || op_LT(a, b) || op_LE(a, b));
  store_f32(0, op_WHERE(c, a, op_CAST(c)));
}
void results() { store_f32(0, result_of(0)); }

#define A float
#include "folds.glsl"
uint reduction;  // the index of the current reduction
uint folding() { return space.op[reduction]; }
Item item(uint64_t line, uint i) {
  if (space.pass == OF_PARTIALS) return Item(Element(space.partials + (line + i) * 4).v, i);
  locate(uint(line) + i);
  float value = argument(reduction);
  return Item(is_sum() ? flushed(value) : value, i);
}

// Computes a row, a chunk of a row, or a row from its partial results. The functions with the calls of a fusion are called
// at one place only, because compilers inline them.
void compute_row(uint i) {
  bool has_chunks = space.pass == OF_CHUNKS, joins = space.pass == OF_PARTIALS;
  uint row = has_chunks ? i / space.chunks : i, me = MODE == 2 ? gl_LocalInvocationIndex : 0;
  uint begin = has_chunks ? i % space.chunks * space.span : 0;
  uint end = joins ? space.chunks : has_chunks ? min(begin + space.span, space.row) : space.row;
  for (reduction = 0; MODE != 0 && reduction < space.reductions; ++reduction) {
    uint64_t partials = uint64_t(reduction) * space.rows * space.chunks;
    uint64_t line = joins ? partials + uint64_t(row) * space.chunks : uint64_t(row * space.row);
    reduced[reduction] = folded(line, begin, end, MODE == 2).value;
    if (has_chunks && me == 0) Element(space.partials + (partials + i) * 4).v = reduced[reduction];
  }
  for (uint j = begin + me; j < end && !joins; j += MODE == 2 ? GROUP : 1) {
    locate(row * space.row + j);
    body();
  }
  if (me == 0 && !has_chunks) {
    locate(row * space.row);
    results();
  }
}

void main() {
  uint first = MODE == 2 ? gl_WorkGroupID.x : gl_GlobalInvocationID.x, step = gl_NumWorkGroups.x * (MODE == 2 ? 1 : GROUP);
  uint tasks = space.pass == OF_CHUNKS ? space.rows * space.chunks : space.rows;
  for (uint i = first; i < tasks; i += step) compute_row(i);
}
