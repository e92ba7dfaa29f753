// Checks calls against the contract, as strictly as a device could.
#pragma once
#include <plugrad/sdk/backend.hpp>

namespace plugrad::sim {

struct Range {  // bytes, from the start of the buffer
  uint64_t begin = 0, end = 0;
  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
};

// Returns the bytes between a view's first and last element; throws INVALID for a malformed view.
Range checked_range(const plugrad_view& view, uint64_t alignment);

// Throws INVALID if an output overlaps another operand in a way forbidden by ops.def. Overlapping
// ranges of strided views pass, since such views may interleave.
void check_overlap(const OpInfo* info, const plugrad_op& op, const Range* ranges);

// Returns the outputs, as a bit set, that the op overwrites entirely and does not read.
uint32_t fresh_outputs(const OpInfo& info, const plugrad_op& op, const Range* ranges);

}  // namespace plugrad::sim
