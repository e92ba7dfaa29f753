// The tensor: a shared handle to storage, a view of it and an autograd node.
#pragma once
#include <plugrad/runtime/device.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/ref.hpp>
#include <plugrad/tensor/dtype.hpp>
#include <plugrad/tensor/shape.hpp>

#include <cstddef>
#include <iosfwd>
#include <span>
#include <vector>

namespace plugrad {

struct Impl;
class HookHandle;  // plugrad/autograd/hooks.hpp
PLUGRAD_API void destroy(Impl* impl) noexcept;

struct BackwardOptions {
  bool retain_graph = false;  // keeps the graph for another backward
  bool create_graph = false;  // records the gradients' own graph; implies retain_graph
};

// Thread safety is as for std::shared_ptr: threads may use distinct handles freely and call const methods of one handle
// concurrently. The caller orders in-place writes, requires_grad_ and gradients. Ops are free functions (plugrad/ops/*.hpp).
class PLUGRAD_API Tensor {
 public:
  Tensor() = default;  // undefined
  explicit Tensor(Ref<Impl> impl) : impl_(std::move(impl)) {}
  // Makes a dense tensor from row-major elements. Throws Error (invalid) if their count differs from the shape's count.
  template <class T> static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = default_device()) {
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<uint8_t> bytes(values.begin(), values.end());
      return from_host(bytes.data(), bytes.size(), DType::boolean, shape, device);
    } else {
      return from_host(values.data(), values.size(), dtype_of_v<T>, shape, device);
    }
  }
  // As from(), with `count` elements in host memory. The caller may reuse the memory on return.
  static Tensor from_host(const void* elements, size_t count, DType dtype, const Shape& shape, Device device);

  bool defined() const { return static_cast<bool>(impl_); }
  Device device() const;
  DType dtype() const;
  int rank() const;
  Shape shape() const;
  Shape strides() const;         // in elements
  int64_t size(int axis) const;  // negative axes count from the end; throws Error (invalid)
  int64_t count() const;         // of elements
  bool is_contiguous() const;    // row-major without gaps

  // Returns the only element, converted to T. Throws Error (invalid) unless count() == 1, and for a complex number unless T
  // is std::complex or bool. Waits for the device.
  template <class T> T item() const;
  template <ComplexNumber T> T item() const {
    const Parts parts = only_number();
    return T(static_cast<typename T::value_type>(parts.real), static_cast<typename T::value_type>(parts.imag));
  }
  // Returns all elements, row-major; T is the dtype's C++ type, and uint8_t also for bool. Waits for the device.
  template <class T> std::vector<T> to_vector() const {
    static_assert(!std::is_same_v<T, bool>, "read a tensor of bool as uint8_t");
    std::vector<T> elements(count_as(dtype_of_v<T>));
    copy_to_host(elements.data());
    return elements;
  }
  // Copies all elements, row-major, to host memory of count() * item_size(dtype()) bytes. Waits for the device.
  void copy_to_host(void* elements) const;

  // true: makes this a leaf with accumulated gradients; changes nothing for the result of a recorded op. false: ops are no
  // longer recorded for this leaf, but it keeps its grad(). Throws Error (invalid) for `true` unless the dtype is floating,
  // and for `false` with the result of a recorded op.
  Tensor& requires_grad_(bool on = true);
  bool requires_grad() const;  // such a leaf, or computed from one while recording
  bool is_leaf() const;        // not the result of a recorded op
  // The gradient of a leaf, or of a result after retain_grad(); else undefined.
  Tensor grad() const;
  void set_grad(const Tensor& grad);
  void clear_grad();
  // Makes backward keep the gradient of this result of an op.
  void retain_grad();
  // Makes later passes of backward() and grad() call the hook, a Tensor(const Tensor& grad), with this tensor's gradient,
  // once all of it has arrived: for a leaf, the sum that a pass adds to grad(). A tensor returned by the hook replaces the
  // gradient; an undefined tensor does not. Several hooks run in the order of their registration, for results before
  // retain_grad() keeps the gradient. An exception of a hook ends the pass, and no gradient changes. Throws Error (invalid)
  // for a tensor that requires no gradient; the pass throws Error (invalid) for a replacement of another shape, dtype or
  // device.
  template <class F> HookHandle register_hook(F hook) const;
  // Makes later backward() calls call the hook, a void(Tensor& leaf), with this leaf after they stored all gradients. An
  // exception of a hook ends the call, but the gradients are stored. Throws Error (invalid) unless this is a leaf that
  // requires a gradient.
  template <class F> HookHandle register_post_accumulate_grad_hook(F hook) const;
  // Adds this tensor's gradient with respect to each leaf to the leaf's grad(). seed has this tensor's shape; for one
  // element the default is 1. Throws Error (invalid) without a graph or if it was freed. A failure changes no gradient.
  void backward(const Tensor& seed = {}, BackwardOptions options = {}) const;
  // Returns a tensor with the same storage, outside the graph. In forward mode (plugrad/func/jvp.hpp) it is a constant.
  Tensor detach() const;

  // In-place writes. They raise the version; gradients check it for their saved values.
  //
  // While recording, this tensor becomes the result of the write if it is the result of an op or the source requires a
  // gradient: gradients pass through the write to the source, and to the tensor's earlier value. Throws Error (invalid) for
  // a leaf that requires a gradient (write under NoGrad), and if other tensors share the memory of a tensor that becomes a
  // result: for a part of a tensor use assign.
  void copy_(const Tensor& source);  // broadcasts and casts; devices may differ
  void fill_(Number value);
  void add_(const Tensor& other, Number scale = 1);  // this += scale * other
  void mul_(Number factor);
  // Moves this leaf and its gradient to another device, or converts them to another dtype; optimisers and modules keep their
  // handle. Throws Error (invalid) for the result of an op, and for a dtype without gradients if this requires a gradient.
  void move_to_(Device device);
  void convert_(DType dtype);

  // The name, in micrograd's style, of this tensor's op, or "" for a leaf.
  const char* op_name() const;
  // Whether both handles refer to the same tensor.
  bool is_same(const Tensor& other) const { return impl_.get() == other.impl_.get(); }

  Impl& impl() const { return *impl_; }

 private:
  struct Parts {
    double real, imag;
  };
  // The only element. Throws Error (invalid) unless count() == 1.
  Parts only_number() const;
  // count(). Throws Error (invalid) unless the elements can be read in this dtype.
  size_t count_as(DType wanted) const;

  Ref<Impl> impl_;
};

template <> PLUGRAD_API double Tensor::item<double>() const;
template <> PLUGRAD_API float Tensor::item<float>() const;
template <> PLUGRAD_API int64_t Tensor::item<int64_t>() const;
template <> PLUGRAD_API bool Tensor::item<bool>() const;
// Elements of bool are read as bytes of value 0 or 1.
template <class T> using HostType = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

// Prints as NumPy does; beyond 1000 elements only three at each end of a long axis. Copies only the printed elements.
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace plugrad
