// Copies between devices, and from and to the host.
#include <ATen/Functions.h>
#include <ATen/Operators.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <bridge/kernel.hpp>
#include <bridge/pinned.hpp>
#include <plugrad/ops/transfer.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
// The dtype in which a copy moves bytes of a dtype that plugrad lacks.
P moved(const T& x) { return dtype_if_any(x.scalar_type()) ? over(x) : bytes_over(x); }

// Elements of 16 bytes are a further axis of two parts.
T halves_of(const T& x) { return at::native::view_as_real(x); }
bool is_wide(const T& x) { return x.element_size() > 8; }

// Copies of more than 8 axes: axes that lie behind each other in both tensors merge.
void copy_of_any_rank(const T& from, const T& to) {
  const auto operand = [](const T& x) {
    auto [memory, offset] = memory_of(x);
    const P element = moved(x.as_strided({1}, {1}));
    return plugrad::StridedOperand{std::move(memory), element.dtype(), offset, x.strides().vec()};
  };
  const std::vector<plugrad::StridedOperand> operands = {operand(to), operand(from)};
  const IntArrayRef sizes = to.sizes();
  for (std::vector<P>& call : plugrad::tensors_over({sizes.data(), sizes.size()}, operands)) call[0].copy_(call[1]);
}

void copy_on_devices(const T& from, const T& to) {
  if (is_wide(to) && from.scalar_type() == to.scalar_type()) return copy_on_devices(halves_of(from), halves_of(to));
  const bool lacks = !dtype_if_any(from.scalar_type()) || !dtype_if_any(to.scalar_type());
  if (lacks && from.scalar_type() != to.scalar_type()) {  // a conversion that plugrad lacks
    to.copy_(from.cpu().to(to.scalar_type()));
    return;
  }
  if (to.dim() > PLUGRAD_MAX_RANK) return copy_of_any_rank(from.expand(to.sizes()), to);
  moved(to).copy_(moved(from));
}

// from's elements as they are to lie in `to`; from itself where it has the form.
T host_form(const T& from, const T& to) {
  const bool fits = from.scalar_type() == to.scalar_type() && from.sizes() == to.sizes() && from.is_contiguous() &&
                    !from.is_conj() && !from.is_neg();
  return fits ? from : from.to(to.scalar_type()).expand(to.sizes()).contiguous().resolve_conj().resolve_neg();
}

// Whether PyTorch's caller may go on before the copy is done: pinned memory in the device's own form.
bool copy_from_pinned(const T& from, const P& to) {
  const PinnedPlace place = pinned_at(from.const_data_ptr());
  if (!place.memory || !(place.memory->device().plugin() == to.device().plugin())) return false;
  plugrad::copy_from_host(to, *place.memory, place.offset);
  return true;
}
void copy_from_cpu(const T& from, const T& to, bool non_blocking) {
  if (is_wide(to)) return copy_from_cpu(halves_of(from.to(to.scalar_type()).expand(to.sizes())), halves_of(to), false);
  if (to.dim() > PLUGRAD_MAX_RANK) {
    const T dense = unused(to.sizes(), to.scalar_type(), to.device().index());
    copy_from_cpu(from.expand(to.sizes()).reshape({-1}), dense.view({-1}), false);
    return copy_on_devices(dense, to);
  }
  const T host = host_form(from, to);
  const P target = moved(to);
  if (non_blocking && host.is_same(from) && copy_from_pinned(from, target)) return;
  plugrad::copy_from_host(target, host.const_data_ptr());
}

bool copy_to_pinned(const P& from, const T& to) {
  const PinnedPlace place = pinned_at(to.const_data_ptr());
  if (!place.memory || !(place.memory->device().plugin() == from.device().plugin())) return false;
  plugrad::copy_to_host(from, *place.memory, place.offset);
  return true;
}
void copy_to_cpu(const T& from, const T& to, bool non_blocking) {
  if (is_wide(from)) {
    if (from.scalar_type() == to.scalar_type()) return copy_to_cpu(halves_of(from.expand(to.sizes())), halves_of(to), false);
    to.copy_(from.cpu());
    return;
  }
  if (from.dim() > PLUGRAD_MAX_RANK) {
    const T dense = unused(from.sizes(), from.scalar_type(), from.device().index());
    copy_on_devices(from, dense);
    to.copy_(dense.view({-1}).cpu().view(from.sizes()));
    return;
  }
  const P source = moved(from);
  const bool direct = to.is_contiguous() && to.scalar_type() == from.scalar_type() && to.sizes() == from.sizes();
  if (direct && non_blocking && copy_to_pinned(source, to)) return;
  if (direct) return source.copy_to_host(to.data_ptr());
  const T host = at::empty(from.sizes(), at::TensorOptions().dtype(from.scalar_type()).device(at::kCPU));
  source.copy_to_host(host.data_ptr());
  to.copy_(host);
}

T copy_from(const T& from, const T& to, bool non_blocking) {
  if (!to.numel()) return to;
  if (from.is_conj() && is_ours(from)) {  // a flag of the tensor: its elements are the conjugates
    copy_from(from.conj(), to, false);
    halves_of(to).select(-1, 1).neg_();
    return to;
  }
  if (from.is_neg() && is_ours(from)) {
    copy_from(from._neg_view(), to, false);
    to.neg_();
    return to;
  }
  if (is_ours(from) && is_ours(to)) copy_on_devices(from, to);
  else if (is_ours(to)) copy_from_cpu(from, to, non_blocking);
  else copy_to_cpu(from, to, non_blocking);
  return to;
}
T copy_from_and_resize(const T& from, const T& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

Scalar local_scalar(const T& x) {
  if (!dtype_if_any(x.scalar_type())) return x.cpu().item();
  const P one = over(x);
  if (at::isFloatingType(x.scalar_type())) return one.item<double>();
  if (x.scalar_type() == at::kBool) return one.item<bool>();
  return one.item<int64_t>();
}

T& fill_number(T& x, const Scalar& value) {
  if (!x.numel()) return x;
  if (x.dim() > PLUGRAD_MAX_RANK || !dtype_if_any(x.scalar_type()))
    return x.copy_(at::scalar_tensor(value, at::TensorOptions().dtype(x.scalar_type()).device(at::kCPU)));
  const ScalarType type = x.scalar_type();
  const Number number = type == at::kBool          ? Number(value.toBool())
                        : at::isFloatingType(type) ? Number(value.toDouble())
                                                   : Number(value.toLong());
  over(x).fill_(number);
  return x;
}
T& fill_tensor(T& x, const T& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  return is_number(value) ? fill_number(x, value.item()) : x.copy_(value);
}
T& zero_(T& x) { return fill_number(x, 0); }
}  // namespace
}  // namespace plugrad_torch

// Copies see to these flags themselves: PyTorch's own way would copy first, and so end here again.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  library.impl("view_as_real", [](const T& x) { return at::native::view_as_real(x); });
  library.impl("view_as_complex", [](const T& x) { return at::native::view_as_complex(x); });
  kernel<o::_copy_from, copy_from>(library);
  kernel<o::_copy_from_and_resize, copy_from_and_resize>(library);
  kernel<o::_local_scalar_dense, local_scalar>(library);
  kernel<o::fill__Scalar, fill_number>(library);
  kernel<o::fill__Tensor, fill_tensor>(library);
  kernel<o::zero_, zero_>(library);
}
