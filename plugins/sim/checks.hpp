// What the contract says of a call, checked as strictly as a device could.
#pragma once
#include <plugrad/sdk/backend.hpp>

namespace plugrad::sim {

struct Range {  // bytes, from the start of the buffer
  uint64_t begin = 0, end = 0;
  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
};

// The bytes between a view's first and last element; throws INVALID for a view that is none.
Range checked_range(const plugrad_view& view, uint64_t alignment);

// Throws INVALID where an output and another operand overlap in a way that ops.def does not allow. Strided views are only
// compared as a whole, so those that interleave pass.
void check_overlap(const OpInfo& info, const plugrad_op& op, const Range* ranges);

// Outputs, as bits, that the op writes wholly and does not read.
uint32_t fresh_outputs(const OpInfo& info, const plugrad_op& op, const Range* ranges);

}  // namespace plugrad::sim
