// The bytes of a .npy file.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace plugrad::io {

// Makes a tensor of a whole .npy file, whose bytes it may change. It calls `fail`, which must throw, with what is wrong.
Tensor tensor_of_npy(std::vector<uint8_t>& file, const std::function<void(const std::string&)>& fail, Device device);
// Returns the header and the elements. Throws Error (invalid) with `path` and `name` for a tensor that NumPy cannot hold.
std::vector<uint8_t> npy_of_tensor(const Tensor& tensor, const std::string& path, const std::string& name);

}  // namespace plugrad::io
