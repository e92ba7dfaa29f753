// The tensor: a shared handle on {storage, view, autograd node}.
#pragma once
#include <plugrad/runtime/device.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/tensor/dtype.hpp>
#include <plugrad/runtime/ref.hpp>
#include <plugrad/tensor/shape.hpp>

#include <cstddef>
#include <iosfwd>
#include <span>
#include <vector>

namespace plugrad {

struct Impl;
PLUGRAD_API void destroy(Impl* impl) noexcept;

struct BackwardOptions {
  bool retain_graph = false;  // the graph may be walked again
  bool create_graph = false;  // the gradients have a graph of their own; implies retain_graph
};

// As safe as a std::shared_ptr: distinct handles on any threads, const methods of one handle at once; writing in place,
// requires_grad and gradients are the caller's to order. Ops are free functions (plugrad/ops/*.hpp).
class PLUGRAD_API Tensor {
 public:
  Tensor() = default;  // undefined
  explicit Tensor(Ref<Impl> impl) : impl_(std::move(impl)) {}
  // A dense tensor with these elements, row-major. Throws Error (invalid) where the count differs from the shape's.
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = default_device()) {
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<uint8_t> bytes(values.begin(), values.end());
      return from_host(bytes.data(), bytes.size(), DType::boolean, shape, device);
    } else {
      return from_host(values.data(), values.size(), dtype_of_v<T>, shape, device);
    }
  }
  // The same from `count` elements in host memory, which is the caller's again on return.
  static Tensor from_host(const void* elements, size_t count, DType dtype, const Shape& shape, Device device);

  bool defined() const { return static_cast<bool>(impl_); }
  Device device() const;
  DType dtype() const;
  int rank() const;
  Shape shape() const;
  Shape strides() const;            // in elements
  int64_t size(int axis) const;     // negative axes count from the end; throws Error (invalid)
  int64_t count() const;            // of elements
  bool is_contiguous() const;       // row-major without gaps

  // The only element, converted. Throws Error (invalid) unless count() == 1. Waits for the device.
  template <class T> T item() const;
  // All elements, row-major; T is the dtype's own type (uint8_t also reads bool). Waits for the device.
  template <class T> std::vector<T> to_vector() const;
  // Copies all elements, row-major, to host memory of count() * item_size(dtype()) bytes. Waits for the device.
  void copy_to_host(void* elements) const;

  // Makes this a leaf that gradients accumulate in, or (false) plain. Throws Error (invalid) for integers and results of
  // ops.
  Tensor& requires_grad_(bool on = true);
  bool requires_grad() const;  // a leaf with gradient, or computed from one while recording
  bool is_leaf() const;        // not the result of a recorded op
  // The gradient: of a leaf, or where retain_grad was called; else undefined.
  Tensor grad() const;
  void set_grad(const Tensor& grad);
  void clear_grad();
  // Keeps the gradient of a result of an op at the next backward.
  void retain_grad();
  // Adds the gradients of this tensor to every leaf that it was computed from. seed has this tensor's shape; it is 1 for
  // one element. Throws Error (invalid) without a graph, or where it was freed. A failed backward changes no gradient.
  void backward(const Tensor& seed = {}, BackwardOptions options = {}) const;
  // The same storage, outside the graph.
  Tensor detach() const;

  // In place, while recording is off (NoGrad) or outside any graph. They raise the version that saved values check.
  void copy_(const Tensor& source);  // broadcasts and casts; devices may differ
  void fill_(Number value);
  void add_(const Tensor& other, Number scale = 1);  // this += scale * other
  void mul_(Number factor);
  // Moves the storage to another device inside the same leaf, so that optimisers and modules keep their handle.
  void move_to_(Device device);

  // The micrograd-like name of the op that made it, or "" for a leaf.
  const char* op_name() const;
  // Whether two handles are the same tensor.
  bool is_same(const Tensor& other) const { return impl_.get() == other.impl_.get(); }

  Impl& impl() const { return *impl_; }

 private:
  Ref<Impl> impl_;
};

template <> PLUGRAD_API double Tensor::item<double>() const;
template <> PLUGRAD_API float Tensor::item<float>() const;
template <> PLUGRAD_API int64_t Tensor::item<int64_t>() const;
template <> PLUGRAD_API bool Tensor::item<bool>() const;
// Elements of bool are read as bytes, 0 or 1.
template <class T> using HostType = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) \
  template <> PLUGRAD_API std::vector<HostType<type>> Tensor::to_vector<HostType<type>>() const;
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE

// As NumPy prints: rows in brackets, more than 1000 elements truncated to three at each end. Copies only what it shows.
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace plugrad
