#include <core/tensor/impl.hpp>

#include <algorithm>

namespace plugrad {

void set_layout(plugrad_view& v, uint64_t alignment) {
  int64_t count = 1, low = 0, high = 0;
  uint16_t bits = 0;
  bool too_many = false, overflow = false;
  for (int i = v.rank; i-- > 0;) {
    const int64_t dense_stride = count;
    too_many |= __builtin_mul_overflow(count, v.shape[i], &count);
    if (v.shape[i] <= 1) continue;
    const int64_t stride = v.strides[i];
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(stride, v.shape[i] - 1, &reach);
    if (stride != dense_stride) bits |= PLUGRAD_STRIDED;
    if (stride == 0) bits |= PLUGRAD_BROADCAST;
    if (stride < 0) bits |= PLUGRAD_NEGATIVE;
    overflow |= __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
  }
  v.count = too_many ? count_beyond_range(v) : count;
  if (v.count == 0) {  // never reaches a kernel, so its strides do not matter
    set_dense(v, alignment);
    return;
  }
  if (overflow) throw Error(Code::invalid, "[shape] the strides of a view reach beyond 2^63 elements");
  if (v.offset & (alignment - 1)) bits |= PLUGRAD_UNALIGNED;
  if (std::max(high, -low) > INT32_MAX || v.count > INT32_MAX) bits |= PLUGRAD_WIDE_INDEX;
  v.layout = bits;
}

plugrad_view dense_view(const Shape& shape, uint8_t dtype, uint64_t alignment) {
  const int64_t count = shape.count();
  if (count > INT64_MAX / 16) throw Error(Code::invalid, "[shape] more elements than can be addressed: " + shape.text());
  plugrad_view v{};
  v.dtype = dtype;
  v.rank = static_cast<uint8_t>(shape.rank());
  std::ranges::copy(shape, v.shape);
  set_dense(v, alignment);
  return v;
}

plugrad_view broadcast_to(const plugrad_view& x, const plugrad_view& shape, uint64_t alignment) {
  plugrad_view out = x;
  out.rank = shape.rank;
  for (int i = 0; i < shape.rank; ++i) {
    const int from = i - (shape.rank - x.rank);
    out.shape[i] = shape.shape[i];
    out.strides[i] = from < 0 || x.shape[from] == 1 ? 0 : x.strides[from];
  }
  set_layout(out, alignment);
  return out;
}

namespace {
Tensor empty_for(uint32_t opcode, DeviceState& device, const Shape& shape, uint8_t dtype, bool upload) {
  plugrad_view v = dense_view(shape, dtype, device.info.alignment);
  Ref<Storage> storage = allocate(device, static_cast<uint64_t>(v.count) * dtype_size(dtype), opcode, upload);
  v.buffer = storage->buffer;
  v.offset = storage->offset;
  Ref<Impl> impl(new (local().objects.get()) Impl(device, std::move(storage)));
  impl->view = v;
  return Tensor(std::move(impl));
}
}  // namespace

Tensor empty(Op op, DeviceState& device, const Shape& shape, uint8_t dtype, bool upload) {
  return empty_for(static_cast<uint32_t>(op), device, shape, dtype, upload);
}
Tensor empty(DeviceState& device, const Shape& shape, uint8_t dtype, bool upload) {
  return empty_for(0, device, shape, dtype, upload);
}

Tensor with_view(const Tensor& x, const plugrad_view& view) {
  Ref<Impl> impl(new (local().objects.get()) Impl(device_of(x), x.impl().storage));
  impl->view = view;
  return Tensor(std::move(impl));
}

Tensor tensor_over(Storage& storage, const plugrad_view& view) {
  Ref<Impl> impl(new (local().objects.get()) Impl(*storage.device, Ref<Storage>::share(&storage)));
  impl->view = view;
  return Tensor(std::move(impl));
}

Tensor dense(const Tensor& x) {
  const plugrad_view& v = view_of(x);
  if (is_dense(v)) return x;
  Tensor out = empty_like(Op::COPY, device_of(x), v, v.dtype);
  if (v.count) run(Op::COPY, {out}, {x});
  return out;
}

int normal_axis(int64_t axis, int rank, const char* what) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  throw Error(Code::invalid, std::string("[") + what + "] axis " + std::to_string(axis) + " is out of range for rank " +
                                 std::to_string(rank) +
                                 (rank ? ": expected " + std::to_string(-rank) + " to " + std::to_string(rank - 1) : ""));
}

void require_defined(const Tensor& x, const char* what) {
  if (!x.defined()) throw Error(Code::invalid, std::string("[") + what + "] the tensor is undefined: give it a value first");
}

void destroy(Impl* impl) noexcept {
  Local& l = local();
  Storage* storage = impl->storage.get();  // its reference ends here: no destructor runs
  if (storage->refs.load(std::memory_order_acquire) == 1 || storage->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy(l, storage);
  std::destroy_at(&impl->node);
  if (impl->frozen) [[unlikely]]
    drop_frozen(*impl);
  l.objects.put(impl);
}

}  // namespace plugrad
