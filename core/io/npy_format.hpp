// The bytes of a .npy file.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace plugrad::io {

// Makes a tensor of a whole .npy file, and may change the file's bytes in memory. It calls `fail` with the fault; `fail`
// must throw.
Tensor tensor_of_npy(std::vector<uint8_t>& file, const std::function<void(const std::string&)>& fail, Device device);
// Returns the header and the elements. Throws Error (invalid) with `path` and `name` for a tensor without a form in NumPy.
std::vector<uint8_t> npy_of_tensor(const Tensor& tensor, const std::string& path, const std::string& name);

}  // namespace plugrad::io
