// Tensors of ONNX files.
#pragma once
#include <core/io/onnx/element_types.hpp>
#include <core/io/onnx/messages.hpp>

#include <string>
#include <vector>

namespace plugrad::io::onnx {

// The elements in their carrier, as bytes on the host.
struct HostTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<char> bytes;
};

// Reads a tensor of the file. External data are read from regular files in the file's folder or below it, never through a
// link. Throws Error: io_error for elements that do not fit the shape, and for external data that are missing, cut short or
// outside the folder; unsupported for types without a carrier.
HostTensor read_host_tensor(const OpenedFile& file, const TensorMessage& tensor);
Tensor read_tensor(const OpenedFile& file, const TensorMessage& tensor, Device device);
Tensor to_device(const HostTensor& tensor, Device device);

}  // namespace plugrad::io::onnx
