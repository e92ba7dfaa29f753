// Tensors of ONNX files.
#pragma once
#include <core/io/onnx/element_types.hpp>
#include <core/io/onnx/messages.hpp>

namespace plugrad::io::onnx {

// Reads a tensor of the file. External data are read from regular files in the file's folder or below it, never through a
// link. mmap: whether large tensors lie over the file's pages where they can, see mapped_tensor.hpp. Throws Error: io_error
// for elements that do not fit the shape, and for external data that are missing, cut short or outside the folder;
// unsupported for types without a carrier.
Tensor read_tensor(const OpenedFile& file, const TensorMessage& tensor, Device device, bool mmap = false);

}  // namespace plugrad::io::onnx
