// Tensors over the bytes of a file.
#pragma once
#include <core/io/opened_file.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <optional>

namespace plugrad::io {

// Returns a dense tensor over the bytes from `begin` on, which lie in the file, without reading them. The pages come from
// the file when they are used; processes with the same file share them, and the system may drop them at any time. A write
// stays in this process. Returns nothing where a copy is better or necessary: for a small tensor, for bytes that are not
// aligned to the dtype, and on a device whose memory is not the host's. Kernels that read bytes which are aligned to the
// dtype alone may be slower. The file must not be cut while the tensor lives: the process would end by SIGBUS.
std::optional<Tensor> mapped_tensor(const OpenedFile& file, uint64_t begin, DType dtype, const Shape& shape, Device device);

}  // namespace plugrad::io
