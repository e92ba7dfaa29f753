// A fusion (sdk/fusion.h) as CUDA C++: a function of one element of each operand, applied to all elements by map.hpp; or
// several functions, one for each pass of fusion_reduction.hpp over reduced lines.
#pragma once
#include <plugrad/sdk/fusion.hpp>

#include <string>

namespace plugrad::cuda {

struct FusionSource {
  std::string text;  // defines two kernels of a Grid or a FusionReduction; empty: it cannot be written
  int pack = 1;      // elements read and written at once by the kernel "packs"; "singles" takes one element
  int packs_each = 1, singles_each = 1;  // packs or elements loaded by a thread before it stores any

  // Of a reducing fusion:
  unsigned reduced_axes = 0;  // bit d: its reductions reduce axis d; 0: it has none
  uint32_t line_outputs = 0;  // bit k: output k has one element for each line
  int reductions = 0;
  uint8_t reduced_dtype = 0;     // of the reduced values; dtypes of equal size are reduced in the same order
  bool goes_on = false;          // after a reduction: one team has a whole line
  size_t set_bytes[2] = {0, 0};  // of the accumulators of a thread of "singles" and of "packs"
};

// Returns no text for a fusion that one kernel cannot run: see FusionShape::can_be_written.
FusionSource source_of(const plugrad_fusion& fusion);

}  // namespace plugrad::cuda
