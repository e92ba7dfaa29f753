// Tensors of ONNX files.
#pragma once
#include <core/io/onnx/element_types.hpp>
#include <core/io/onnx/messages.hpp>

#include <cstdint>

namespace plugrad::io::onnx {

// Whether large tensors are copied to the device, or lie over the file's pages where they can: see mapped_tensor.hpp.
enum class Weights : uint8_t { read, mapped };

// Reads a tensor of the file. External data are read from regular files in the file's folder or below it, never through a
// link. Throws Error: io_error for elements that do not fit the shape, and for external data that are missing, cut short or
// outside the folder; unsupported for types without a carrier.
Tensor read_tensor(const OpenedFile& file, const TensorMessage& tensor, Device device, Weights how = Weights::read);

}  // namespace plugrad::io::onnx
