// The object behind a Tensor handle, and its views for ops.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/dispatch/dispatch.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstring>
#include <vector>

namespace plugrad {

struct Node;
struct Impl;
void destroy(Node* node) noexcept;
void drop_frozen(Impl& impl) noexcept;

struct Impl : Counted {
  Impl(DeviceState& on, Ref<Storage> memory) : device(&on), storage(std::move(memory)) {}
  uint32_t frozen = 0;  // whether autograd keeps the node of this leaf with a gradient that was switched off
  DeviceState* device;
  Ref<Storage> storage;
  Ref<Node> node;     // set if a gradient is wanted
  plugrad_view view;  // left uninitialised beyond rank: zeroing it costs as much as an op
};
static_assert(sizeof(Impl) <= kObjectBytes);

inline const plugrad_view& view_of(const Tensor& t) { return t.impl().view; }
inline Storage* storage_of(const Tensor& t) { return t.impl().storage.get(); }
inline DeviceState& device_of(const Tensor& t) { return *t.impl().device; }
inline uint8_t dtype_of(const Tensor& t) { return t.impl().view.dtype; }

template <class A, class B> inline bool same_shape(const A& a, const B& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.shape[i] != b.shape[i]) return false;
  return true;
}

inline Shape shape_of(const plugrad_view& v) { return Shape(std::span(v.shape, v.rank)); }
// x as an operand of an op, with its own view or with another view of its storage.
inline Operand operand(const Tensor& x, const plugrad_view& view) {
  return {view, &x, [](const void* tensor) { return storage_of(*static_cast<const Tensor*>(tensor)); }};
}
inline Operand operand(const Tensor& x) { return operand(x, view_of(x)); }
inline bool is_dense(const plugrad_view& v) { return !(v.layout & PLUGRAD_STRIDED); }

// Computes count and layout of a view from its rank, shape, strides and offset.
void set_layout(plugrad_view& v, uint64_t alignment);
// A dense view of this shape without memory. Throws Error (invalid) for an impossible shape.
plugrad_view dense_view(const Shape& shape, uint8_t dtype, uint64_t alignment);
// A view of x broadcast to another shape by strides of 0. The caller ensures that the shapes fit.
plugrad_view broadcast_to(const plugrad_view& x, const plugrad_view& shape, uint64_t alignment);

// Returns a dense, uninitialised tensor with the shape of like, for the result of an op. An error (out_of_memory) names the
// op.
[[gnu::always_inline]] inline Tensor empty_like(Local& l, Op op, DeviceState& device, const plugrad_view& like,
                                                uint8_t dtype) {
  l.objects.reserve();
  const uint64_t bytes = static_cast<uint64_t>(like.count) * dtype_size(dtype);  // may wrap: see below
  Storage* storage = allocate(l, device, bytes, static_cast<uint32_t>(op)).release();
  Impl* impl = new (l.objects.get_reserved()) Impl(device, Ref<Storage>(storage));
  plugrad_view& v = impl->view;
  v.buffer = storage->buffer;
  v.offset = storage->offset;
  v.count = like.count;
  // Stores dtype to reserved as one word, so that later loads of the single fields are forwarded from one store.
  uint64_t word;
  static_assert(offsetof(plugrad_view, shape) - offsetof(plugrad_view, dtype) == sizeof word);
  std::memcpy(&word, &like.dtype, sizeof word);
  std::memcpy(&v.dtype, &(word = (word & ~uint64_t(0xff)) | dtype), sizeof word);
  for (int i = 0; i < like.rank; ++i) {
    v.shape[i] = like.shape[i];
    v.strides[i] = like.strides[i];
  }
  Tensor out{Ref<Impl>(impl)};
  if (like.layout) [[unlikely]] {  // strided, or of more than 2^31 elements
    dense_bytes(static_cast<uint32_t>(op), v);
    set_dense(v, device.info.alignment);
  }
  return out;
}
inline Tensor empty_like(Op op, DeviceState& device, const plugrad_view& like, uint8_t dtype) {
  return empty_like(local(), op, device, like, dtype);
}
// As empty_like(), with a shape. upload: the copy stream writes the tensor first.
Tensor empty(Op op, DeviceState& device, const Shape& shape, uint8_t dtype, bool upload = false);
// As above, without an op.
Tensor empty(DeviceState& device, const Shape& shape, uint8_t dtype, bool upload = false);

// Another view of x's storage, outside the graph.
Tensor with_view(const Tensor& x, const plugrad_view& view);

// x outside the graph, with its tangents: see Tensor::detach.
inline Tensor ungraphed(const Tensor& x) { return with_view(x, view_of(x)); }
// A tensor over a storage, with this view.
Tensor tensor_over(Storage& storage, const plugrad_view& view);

// Kernels rely on bools of value 0 or 1. Returns nothing if all of the host's bools have such values, else corrected ones.
std::vector<unsigned char> zeros_and_ones(const void* elements, size_t count);

// Raises the version before a write. Call it when only the kernel can still fail.
inline void raise_version(Tensor& x) { ++storage_of(x)->version; }
// Throws Error (invalid) for an undefined tensor.
void require_defined(const Tensor& x, const char* what);
// Returns x if it is dense, else a dense copy; not recorded.
Tensor dense(const Tensor& x);
// Resolves an axis; a negative axis counts from the end. Throws Error (invalid) if it is out of range.
int normal_axis(int64_t axis, int rank, const char* what);

}  // namespace plugrad
