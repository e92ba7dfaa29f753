// Memory of devices, and tensors over it: for libraries that keep tensors of their own and run plugrad's ops on them.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace plugrad {

struct Storage;

// A handle to bytes of a device. Tensors over the bytes hold them too; the last holder frees them. While a handle lives, a
// write in place that autograd would record is refused, as it is while another tensor lies over the bytes. Thread safety is
// as for Tensor.
class PLUGRAD_API Memory {
 public:
  Memory() noexcept;  // undefined
  // Allocates uninitialised bytes, aligned to device.alignment(). Throws Error (out_of_memory).
  Memory(Device device, uint64_t bytes);
  Memory(const Memory& other);
  Memory(Memory&& other) noexcept;
  Memory& operator=(const Memory& other);
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  bool defined() const { return static_cast<bool>(storage_); }
  Device device() const;
  uint64_t bytes() const;
  // Whether another handle or a tensor holds the bytes too.
  bool is_shared() const;
  // Whether both handles are for the same bytes.
  friend bool operator==(const Memory& a, const Memory& b) { return a.storage_.get() == b.storage_.get(); }

 private:
  friend Memory memory_of(const Tensor& x);
  friend Tensor tensor_over(const Memory&, DType, uint64_t, const Shape&, const Shape&);
  explicit Memory(Ref<Storage> storage) noexcept;
  Ref<Storage> storage_;
};

// Returns the memory that holds x's elements; it may be larger than x, and other tensors may share it.
PLUGRAD_API Memory memory_of(const Tensor& x);
// Whether anything but x, and copies of this handle of x, holds its memory: another tensor over it, a Memory, a graph or the
// recording of a compiled step.
PLUGRAD_API bool shares_memory(const Tensor& x);
// Returns where x's first element begins in memory_of(x).
PLUGRAD_API uint64_t byte_offset_of(const Tensor& x);

// Returns a tensor over memory, without a copy and outside the graph. byte_offset: of the first element; strides: in
// elements, of any sign; a stride of 0 repeats elements. Tensors of several dtypes may lie over the same bytes; bytes of a
// bool must be 0 or 1. Throws Error (invalid) if an element lies outside the memory or is not aligned to its own size.
PLUGRAD_API Tensor tensor_over(const Memory& memory, DType dtype, uint64_t byte_offset, const Shape& shape,
                               const Shape& strides);

// An operand of any rank, as tensor_over() takes it; its sizes are those of all operands of a call.
struct StridedOperand {
  Memory memory;
  DType dtype;
  uint64_t byte_offset;
  std::vector<int64_t> strides;
};
// Returns tensors of rank 8 or less that cover operands of these sizes, which may have more axes: calls of an elementwise op
// or a copy, one tensor of each operand in each call. Axes are merged where all operands allow it, so most operands need one
// call. An operand with extent 1 along an axis has stride 0 there. Throws Error as tensor_over() does.
PLUGRAD_API std::vector<std::vector<Tensor>> tensors_over(std::span<const int64_t> sizes,
                                                          std::span<const StridedOperand> operands);

}  // namespace plugrad
