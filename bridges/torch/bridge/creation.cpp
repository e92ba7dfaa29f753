// Kernels that make tensors and views. Memory is that of the named device: kernels of other libraries run without PyTorch's
// device guard, so the current device says nothing.
#include <ATen/Operators.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/TensorShape.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <bridge/kernel.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/masks.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
ScalarType type_or_default(std::optional<ScalarType> dtype) {
  return dtype.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
}

T empty(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<at::Layout> layout,
        std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!layout || *layout == at::kStrided, "plugrad has dense tensors only, not ", *layout);
  for (const int64_t each : size)
    TORCH_CHECK(each >= 0, "Trying to create tensor with negative dimension ", each, ": ", size);
  switch (format.value_or(at::MemoryFormat::Contiguous)) {
    case at::MemoryFormat::ChannelsLast:
      return unused(size, c10::get_channels_last_strides_2d(size), type_or_default(dtype), index_or_current(device));
    case at::MemoryFormat::ChannelsLast3d:
      return unused(size, c10::get_channels_last_strides_3d(size), type_or_default(dtype), index_or_current(device));
    default: return unused(size, type_or_default(dtype), index_or_current(device));
  }
}
T empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype, std::optional<at::Layout>,
                std::optional<at::Device> device, std::optional<bool>) {
  return unused(size, stride, type_or_default(dtype), index_or_current(device));
}

T as_strided(const T& x, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(x, size, stride, offset);
}
T reshape_alias(const T& x, IntArrayRef size, IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(x, size, stride, x.storage_offset());
}
T view(const T& x, IntArrayRef size) { return at::native::view(x, size); }
T unfold(const T& x, int64_t axis, int64_t size, int64_t step) { return at::native::unfold(x, axis, size, step); }

c10::StorageImpl& storage_of(const T& x) { return *x.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(); }

const T& resize_(const T& x, IntArrayRef size, std::optional<at::MemoryFormat> format) {
  if (x.sizes() != size) x.unsafeGetTensorImpl()->generic_set_sizes_contiguous(size);
  if (format && *format != at::MemoryFormat::Preserve) x.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  if (x.numel())
    grow(storage_of(x), static_cast<uint64_t>(x.numel() + x.storage_offset()) * x.element_size(), x.device().index());
  return x;
}
T& set_part(T& x, at::Storage source, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  const std::vector<int64_t> dense = dense_strides(size);
  const IntArrayRef strides = stride.size() == size.size() ? stride : IntArrayRef(dense);
  auto* impl = x.unsafeGetTensorImpl();
  const uint64_t bytes = at::detail::computeStorageNbytes(size, strides, x.element_size(), offset);
  impl->set_storage_keep_dtype(source);
  impl->set_sizes_and_strides(size, strides, offset);
  grow(*source.unsafeGetStorageImpl(), bytes, source.device().index());
  return x;
}
T& set_storage(T& x, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / x.element_size());
  return set_part(x, std::move(source), 0, {count}, {1});
}
T& set_tensor(T& x, const T& source) {
  return set_part(x, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}
T& set_empty(T& x) { return set_storage(x, unused({0}, x.scalar_type(), x.device().index()).storage()); }

bool is_set_to(const T& x, const T& other) {
  return x.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
         x.storage_offset() == other.storage_offset() && x.sizes() == other.sizes() && x.strides() == other.strides();
}

T& arange_out(const Scalar& start, const Scalar& end, const Scalar& step, T& out) {
  if (out.scalar_type() == at::kBool) throw Unsupported{"bool"};
  TORCH_CHECK(step.toDouble() != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(start.toDouble()) && std::isfinite(end.toDouble()), "unsupported range: ", start.toDouble(),
              " -> ", end.toDouble());
  TORCH_CHECK((step.toDouble() > 0) == (end.toDouble() >= start.toDouble()) || end.toDouble() == start.toDouble(),
              "upper bound and lower bound inconsistent with step sign");
  const bool whole = at::isIntegralType(out.scalar_type(), false);
  const auto number = [&](const Scalar& value) { return whole ? Number(value.toLong()) : number_of(value); };
  return write(
      out, plugrad::arange(number(start), number(end), number(step), dtype_of(out.scalar_type()), device_of(out.device())));
}
T& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, T& out) {
  if (!at::isFloatingType(out.scalar_type())) throw Unsupported{"whole numbers"};
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  return write(
      out, plugrad::linspace(start.toDouble(), end.toDouble(), steps, dtype_of(out.scalar_type()), device_of(out.device())));
}
T& eye_out(int64_t n, int64_t m, T& out) {
  TORCH_CHECK(n >= 0 && m >= 0, "n and m must be greater or equal to 0, got ", n, " and ", m);
  return write(out, plugrad::eye(n, m, dtype_of(out.scalar_type()), device_of(out.device())));
}
T& eye_square_out(int64_t n, T& out) { return eye_out(n, n, out); }
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  // Views and storages compute nothing: they need no wrapper, and PyTorch's CPU has none to fall back to.
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("unfold", &unfold);
  library.impl("resize_", &resize_);
  library.impl("set_", &set_empty);
  library.impl("set_.source_Tensor", &set_tensor);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &set_part);
  library.impl("is_set_to", &is_set_to);
  kernel<o::arange_start_out, arange_out>(library);
  kernel<o::linspace_out, linspace_out>(library);
  kernel<o::eye_out, eye_square_out>(library);
  kernel<o::eye_m_out, eye_out>(library);
}
