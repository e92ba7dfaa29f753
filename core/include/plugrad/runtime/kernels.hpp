// Queries a device's kernels without running them.
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace plugrad {

struct KernelOperand {
  std::string dtype;    // "f32"
  bool number = false;  // passed by value instead of in memory
};

// Returns whether the device's plugin has a kernel for an op of sdk/ops.md, such as "matmul", on dense operands, outputs
// first. The call may take as long as the first use of the kernel. Any thread may call it. Throws Error (invalid) for an
// unknown op or dtype, or for a wrong number of operands.
PLUGRAD_API bool has_kernel(Device device, const std::string& op, const std::vector<KernelOperand>& operands);

}  // namespace plugrad
