// Which kernels a device has, without running them.
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

// Whether the device's plugin has a kernel for an op of sdk/ops.md, such as "matmul", on dense operands, outputs first. May
// take as long as the first use of that kernel, and any thread may ask. Throws Error (invalid) for an unknown op or dtype,
// or for another number of operands than the op has.
PLUGRAD_API bool has_kernel(Device device, const std::string& op, const std::vector<KernelOperand>& operands);

}  // namespace plugrad
