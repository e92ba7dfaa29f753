// Compares the results of an op on two devices.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

#include <string>

namespace plugrad {

// Compares an output of a call with `got`, the same output computed by another device, of the same shape. The host can read
// the call's operands and `got`. Returns "" if the outputs agree within the bounds of rounding, else the first differing
// element: "element (1, 2) is 0.5, expected 0.25 (within 1e-06)". The bound is looser than the bound of sdk/ops.md, by
// which plugrad-conform judges.
std::string difference(const OpCall& call, int output, const plugrad_view& got);

}  // namespace plugrad
