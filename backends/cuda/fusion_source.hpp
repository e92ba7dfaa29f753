// A fusion (sdk/fusion.h) as CUDA C++: a function of one element of each operand, which map.hpp applies to all; or
// several, one for each pass of fusion_reduction.hpp over the lines that it reduces.
#pragma once
#include <plugrad/sdk/fusion.hpp>

#include <string>

namespace plugrad::cuda {

struct FusionSource {
  std::string text;  // defines two kernels, which take a Grid or a FusionReduction; empty: it cannot be written
  int pack = 1;      // elements that the kernel "packs" reads and writes at once; the kernel "singles" takes one
  int packs_each = 1, singles_each = 1;  // packs or elements that a thread loads before it stores any

  // Of a fusion that reduces:
  unsigned reduced_axes = 0;  // bit d: its reductions reduce axis d; 0: it has none
  uint32_t line_outputs = 0;  // bit k: output k has one element for each line
  int reductions = 0;
  uint8_t reduced_dtype = 0;     // of what is reduced; others of equal size are reduced in the same order
  bool goes_on = false;          // after a reduction, so that one team has all of a line
  size_t set_bytes[2] = {0, 0};  // of the accumulators of a thread of "singles" and of "packs"
};

// Returns no text for a fusion that no thread can run at once: FusionShape::can_be_written.
FusionSource source_of(const plugrad_fusion& fusion);

}  // namespace plugrad::cuda
