#include <bridge/tensors.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/TensorOperators.h>
#include <c10/core/StorageImpl.h>
#include <plugrad/ops/factories.hpp>

namespace plugrad_torch {
namespace {
struct DTypePair {
  ScalarType torch;
  DType plugrad;
};
constexpr DTypePair kDTypePairs[] = {
    {at::kFloat, DType::f32}, {at::kDouble, DType::f64},   {at::kHalf, DType::f16},  {at::kBFloat16, DType::bf16},
    {at::kLong, DType::i64},  {at::kInt, DType::i32},      {at::kShort, DType::i16}, {at::kChar, DType::i8},
    {at::kByte, DType::u8},   {at::kBool, DType::boolean},
};

c10::StorageImpl& storage_of(const T& x) { return *x.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(); }

P over_as(const T& x, DType dtype) {
  const IntArrayRef sizes = x.sizes();
  const Shape shape = shape_of(sizes);
  if (!x.numel()) return plugrad::empty(shape, dtype, device_of(x.device()));
  const auto [memory, offset] = memory_of(x);
  return plugrad::tensor_over(memory, dtype, offset, shape, shape_of(x.strides()));
}

T wrap(c10::DataPtr memory, uint64_t bytes, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, std::move(memory),
                                                       &allocator(), /*resizable=*/true);
  T x = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)),
                                                 c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                 c10::scalarTypeToTypeMeta(dtype));
  x.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return x;
}
}  // namespace

bool is_ours(const T& x) { return x.device().type() == c10::DeviceType::PrivateUse1; }
bool is_number(const T& x) { return x.dim() == 0 && x.is_cpu(); }

std::optional<DType> dtype_if_any(ScalarType type) {
  for (const DTypePair& each : kDTypePairs)
    if (each.torch == type) return each.plugrad;
  return std::nullopt;
}
DType dtype_of(ScalarType type) {
  if (const auto dtype = dtype_if_any(type)) return *dtype;
  throw Unsupported{"this dtype"};
}
ScalarType scalar_type_of(DType dtype) {
  for (const DTypePair& each : kDTypePairs)
    if (each.plugrad == dtype) return each.torch;
  TORCH_CHECK(false, "plugrad's dtype ", plugrad::dtype_name(dtype), " has no counterpart in PyTorch");
}
Shape shape_of(IntArrayRef sizes) {
  if (sizes.size() > PLUGRAD_MAX_RANK) throw Unsupported{"more than 8 axes"};
  return Shape(std::span<const int64_t>(sizes.data(), sizes.size()));
}
Number number_of(const Scalar& value) {
  if (value.isBoolean()) return Number(value.toBool());
  if (value.isIntegral(false)) return Number(value.toLong());
  if (value.isFloatingPoint()) return Number(value.toDouble());
  throw Unsupported{"complex numbers"};
}

std::pair<plugrad::Memory, uint64_t> memory_of(const T& x) {
  TORCH_CHECK(is_ours(x),
              "Expected all tensors to be on the same device, but found at least two devices: a device of "
              "plugrad and ",
              x.device());
  const c10::DataPtr& data = storage_of(x).data_ptr();
  const Place place = place_of(data);
  TORCH_CHECK(place.block, "plugrad: a tensor of ", x.device(), " has the address ", data.get(),
              ", which is not memory of the device");
  return {place.block->memory(), place.offset + static_cast<uint64_t>(x.storage_offset()) * x.element_size()};
}

P over(const T& x) { return over_as(x, dtype_of(x.scalar_type())); }
P over(const T& x, ScalarType dtype) {
  P y = over(x);
  return x.scalar_type() == dtype ? y : plugrad::cast(y, dtype_of(dtype));
}
P over(const OptT& x) { return x && x->defined() ? over(*x) : P(); }
P floating_over(const T& x) {
  if (!at::isFloatingType(x.scalar_type())) throw Unsupported{"whole numbers"};
  return over(x);
}
P bytes_over(const T& x) {
  switch (x.element_size()) {
    case 1: return over_as(x, DType::u8);
    case 2: return over_as(x, DType::i16);
    case 4: return over_as(x, DType::i32);
    case 8: return over_as(x, DType::i64);
    default: throw Unsupported{"elements of 16 bytes"};
  }
}

std::vector<int64_t> dense_strides(IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= std::max<int64_t>(sizes[i], 1)) strides[i] = stride;
  return strides;
}
T unused(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, c10::DeviceIndex index) {
  const uint64_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  return wrap(unused_memory(bytes, index), bytes, dtype, sizes, strides, 0);
}
T unused(IntArrayRef sizes, ScalarType dtype, c10::DeviceIndex index) {
  return unused(sizes, dense_strides(sizes), dtype, index);
}

T alias(const P& y) {
  const Shape shape = y.shape(), strides = y.strides();
  const IntArrayRef sizes(shape.begin(), shape.size()), steps(strides.begin(), strides.size());
  const c10::DeviceIndex index = index_of(y.device());
  if (!y.count()) return unused(sizes, scalar_type_of(y.dtype()), index);
  plugrad::Memory memory = plugrad::memory_of(y);
  const uint64_t bytes = memory.bytes();
  return wrap(storage_memory(std::move(memory), index), bytes, scalar_type_of(y.dtype()), sizes, steps,
              static_cast<int64_t>(plugrad::byte_offset_of(y)) / plugrad::item_size(y.dtype()));
}
T result(const P& y) { return alias(plugrad::shares_memory(y) ? plugrad::clone(y) : y); }

void set_sizes(const T& x, IntArrayRef sizes) {
  x.unsafeGetTensorImpl()->generic_set_sizes_contiguous(sizes);
  const uint64_t bytes = static_cast<uint64_t>(x.numel() + x.storage_offset()) * x.element_size();
  c10::StorageImpl& storage = storage_of(x);
  if (!x.numel() || storage.nbytes() >= bytes) return;
  storage.set_data_ptr_noswap(unused_memory(bytes, x.device().index()));
  storage.set_nbytes(bytes);
}

namespace {
bool takes_memory(const T& to, const P& y) {
  if (to.storage_offset() || !to.is_contiguous() || to.scalar_type() != scalar_type_of(y.dtype())) return false;
  const Place place = place_of(storage_of(to).data_ptr());
  if (!place.block || place.offset || place.block->has_memory() || place.block->index() != index_of(y.device()))
    return false;
  if (!y.is_contiguous() || plugrad::shares_memory(y) || plugrad::byte_offset_of(y)) return false;
  plugrad::Memory memory = plugrad::memory_of(y);
  return memory.bytes() == place.block->bytes() && place.block->adopt(std::move(memory));
}
}  // namespace

T& write(T& to, const P& y) {
  const Shape shape = y.shape();
  const IntArrayRef sizes(shape.begin(), shape.size());
  if (to.sizes() != sizes) set_sizes(to, sizes);
  if (y.count() && !takes_memory(to, y)) over(to).copy_(y);
  return to;
}

void grow(c10::StorageImpl& storage, uint64_t bytes, c10::DeviceIndex index) {
  if (storage.nbytes() >= bytes) return;
  c10::DataPtr larger = unused_memory(bytes, index);
  const Place before = place_of(storage.data_ptr());
  if (before.block && before.block->has_memory()) {
    const auto count = static_cast<int64_t>(storage.nbytes());
    plugrad::tensor_over(place_of(larger).block->memory(), DType::u8, 0, {count}, {1})
        .copy_(plugrad::tensor_over(before.block->memory(), DType::u8, before.offset, {count}, {1}));
  }
  storage.set_data_ptr_noswap(std::move(larger));
  storage.set_nbytes(bytes);
}

}  // namespace plugrad_torch
