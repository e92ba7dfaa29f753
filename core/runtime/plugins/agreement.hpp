// Whether two devices agree about an op's result.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

#include <string>

namespace plugrad {

// Compares an output of a call, whose operands the host can read, with the same output as another device computed it:
// `got`, readable as well and of the same shape. Returns "" if they agree within what rounding explains, else the first
// element that differs: "element (1, 2) is 0.5, expected 0.25 (within 1e-06)". The bound is looser than that of sdk/ops.md,
// by which plugrad-conform judges.
std::string difference(const OpCall& call, int output, const plugrad_view& got);

}  // namespace plugrad
