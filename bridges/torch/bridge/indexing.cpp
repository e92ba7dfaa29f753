// Indexing, joining and rearranging.
#include <ATen/Operators.h>
#include <bridge/adapt.hpp>
#include <bridge/gradient.hpp>
#include <plugrad/ops/advanced_indexing.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/layers.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/nonzero.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/sets.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
T embedding(const T& weight, const T& indices, int64_t, bool, bool) {
  return result(plugrad::embedding(over(weight), over(indices, at::kLong)));
}
T embedding_backward(const T& grad, const T& indices, int64_t rows, int64_t padding, bool by_frequency) {
  if (by_frequency) throw Unsupported{"scale_grad_by_freq"};
  const P index = plugrad::reshape(over(indices, at::kLong), {-1});
  P g = plugrad::reshape(over(grad), {index.count(), grad.size(-1)});
  if (padding >= 0) g = plugrad::mul(g, plugrad::unsqueeze(plugrad::cast(plugrad::ne(index, padding), g.dtype()), 1));
  return result(plugrad::index_add(plugrad::zeros({rows, grad.size(-1)}, g.dtype(), g.device()), 0, index, g));
}

// --- Along an axis. Tensors of rank 0 count as one of one axis.

P lifted(const P& x) { return x.rank() ? x : plugrad::reshape(x, {1}); }
P index_over(const T& index) { return lifted(over(index, at::kLong)); }
// f(x) for x of one axis or more; the result has x's rank.
template <class F> P along_axis(const T& x, F f) {
  const P y = f(lifted(over(x)));
  return x.dim() ? y : plugrad::reshape(y, {});
}

P selected(const T& x, int64_t axis, const T& index) {
  TORCH_CHECK(index.dim() <= 1, "Index is supposed to be a vector, but got dim: ", index.dim());
  return along_axis(x, [&](const P& y) { return plugrad::index_select(y, static_cast<int>(axis), index_over(index)); });
}
T index_select(const T& x, int64_t axis, const T& index) { return result(selected(x, axis, index)); }
T& index_select_out(const T& x, int64_t axis, const T& index, T& out) { return write(out, selected(x, axis, index)); }

T& gather_out(const T& x, int64_t axis, const T& index, bool, T& out) {
  if (!index.numel()) return out;
  const P y = plugrad::gather(lifted(over(x)), static_cast<int>(axis), index_over(index));
  return write(out, index.dim() ? y : plugrad::reshape(y, {}));
}
// The part of the source that the index covers.
P covered(const T& source, const T& index) {
  P y = lifted(over(source));
  for (int i = 0; i < index.dim(); ++i)
    if (source.size(i) != index.size(i)) y = plugrad::narrow(y, i, 0, index.size(i));
  return y;
}
T& scatter_add_out(const T& x, int64_t axis, const T& index, const T& source, T& out) {
  if (!index.numel()) return write(out, over(x));
  return write(out, along_axis(x, [&](const P& y) {
                 return plugrad::scatter_add(y, static_cast<int>(axis), index_over(index), covered(source, index));
               }));
}
T& scatter_out(const T& x, int64_t axis, const T& index, const T& source, T& out) {
  if (!index.numel()) return write(out, over(x));
  return write(out, along_axis(x, [&](const P& y) {
                 return plugrad::scatter(y, static_cast<int>(axis), index_over(index), covered(source, index));
               }));
}
T& scatter_value_out(const T& x, int64_t axis, const T& index, const Scalar& value, T& out) {
  if (!index.numel()) return write(out, over(x));
  return write(out, along_axis(x, [&](const P& y) {
                 return plugrad::scatter(y, static_cast<int>(axis), index_over(index), number_of(value));
               }));
}
plugrad::ScatterReduction scatter_reduction(std::string_view name) {
  if (name == "sum") return plugrad::ScatterReduction::sum;
  if (name == "prod") return plugrad::ScatterReduction::prod;
  if (name == "mean") return plugrad::ScatterReduction::mean;
  if (name == "amax") return plugrad::ScatterReduction::amax;
  if (name == "amin") return plugrad::ScatterReduction::amin;
  throw Unsupported{"this reduction"};
}
T& scatter_reduce_out(const T& x, int64_t axis, const T& index, const T& source, std::string_view reduce, bool with_self,
                      T& out) {
  if (!index.numel()) return write(out, over(x));
  return write(out, along_axis(x, [&](const P& y) {
                 return plugrad::scatter_reduce(y, static_cast<int>(axis), index_over(index), covered(source, index),
                                                scatter_reduction(reduce), with_self);
               }));
}
T& index_add_out(const T& x, int64_t axis, const T& index, const T& source, const Scalar& alpha, T& out) {
  return write(out, along_axis(x, [&](const P& y) {
                 return plugrad::index_add(y, static_cast<int>(axis), index_over(index), lifted(over(source)),
                                           number_of(alpha));
               }));
}
T& index_copy_out(const T& x, int64_t axis, const T& index, const T& source, T& out) {
  return write(out, along_axis(x, [&](const P& y) {
                 return plugrad::index_copy(y, static_cast<int>(axis), index_over(index), lifted(over(source)));
               }));
}
T& index_fill_(T& x, int64_t axis, const T& index, const Scalar& value) {
  return write(x, along_axis(x, [&](const P& y) {
                 return plugrad::index_fill(y, static_cast<int>(axis), index_over(index), number_of(value));
               }));
}
T& index_fill_tensor_(T& x, int64_t axis, const T& index, const T& value) {
  return index_fill_(x, axis, index, value.item());
}

// --- By several indices.

std::vector<plugrad::Index> key_of(const T& x, const c10::List<OptT>& indices) {
  std::vector<plugrad::Index> key;
  for (const OptT& each : indices) {
    if (!each || !each->defined()) {
      key.emplace_back(plugrad::Slice{});
      continue;
    }
    TORCH_CHECK_INDEX(at::isIntegralType(each->scalar_type(), true),
                      "tensors used as indices must be long, int, byte or bool tensors");
    const T here = is_ours(*each) ? *each : each->to(x.device());
    const bool is_mask = each->scalar_type() == at::kByte || each->scalar_type() == at::kBool;
    key.emplace_back(over(here, is_mask ? at::kBool : at::kLong));
  }
  return key;
}
T indexed(const T& x, const c10::List<OptT>& indices) { return result(plugrad::index(over(x), key_of(x, indices))); }
T& indexed_out(const T& x, const c10::List<OptT>& indices, T& out) {
  return write(out, plugrad::index(over(x), key_of(x, indices)));
}
T& index_put_(T& x, const c10::List<OptT>& indices, const T& value, bool accumulate, bool) {
  P target = over(x);
  const P source = is_ours(value) ? over(value, x.scalar_type()) : over(value.to(x.device(), x.scalar_type()));
  plugrad::index_put_(target, key_of(x, indices), source, accumulate);
  return x;
}
T masked_select(const T& x, const T& mask) { return result(plugrad::masked_select(over(x), over(mask))); }
T& masked_select_out(const T& x, const T& mask, T& out) { return write(out, plugrad::masked_select(over(x), over(mask))); }
T& masked_scatter_(T& x, const T& mask, const T& source) {
  return write(x, plugrad::masked_scatter(over(x), over(mask), over(source)));
}
T nonzero(const T& x) { return result(plugrad::nonzero(over(x))); }
T& nonzero_out(const T& x, T& out) { return write(out, plugrad::nonzero(over(x))); }
T take(const T& x, const T& index) { return result(plugrad::take(over(x), over(index, at::kLong))); }
T& take_out(const T& x, const T& index, T& out) { return write(out, plugrad::take(over(x), over(index, at::kLong))); }
T& put_(T& x, const T& index, const T& source, bool accumulate) {
  return write(x, plugrad::put(over(x), over(index, at::kLong), over(source), accumulate));
}

// --- Joining and rearranging.

T& cat_out(const at::ITensorListRef& tensors, int64_t axis, T& out) {
  std::vector<P> parts;
  int rank = 0;
  for (const T& each : tensors) {
    if (each.dim() == 1 && each.size(0) == 0) continue;  // PyTorch skips these, whatever the shapes of the others
    parts.push_back(over(each, out.scalar_type()));
    rank = static_cast<int>(each.dim());
  }
  if (parts.empty()) return out;
  return write(out, plugrad::cat(parts, static_cast<int>(axis < 0 ? axis + rank : axis)));
}
T flip(const T& x, IntArrayRef axes) { return result(x.dim() ? plugrad::flip(over(x), shape_of(axes)) : over(x)); }
T roll(const T& x, IntArrayRef shifts, IntArrayRef axes) {
  return result(x.dim() ? plugrad::roll(over(x), shape_of(shifts), shape_of(axes)) : over(x));
}
T constant_pad(const T& x, IntArrayRef pads, const Scalar& value) {
  for (const int64_t each : pads)
    if (each < 0) throw Unsupported{"negative padding"};
  return result(plugrad::pad(over(x), pads.vec(), number_of(value)));
}
using PadMode = plugrad::PadMode;
template <PadMode kMode> T& pad_out(const T& x, IntArrayRef pads, T& out) {
  for (const int64_t each : pads)
    if (each < 0) throw Unsupported{"negative padding"};
  return write(out, plugrad::pad(over(x), pads.vec(), kMode));
}
template <PadMode kMode> P pad_gradient(const T& grad, const T& x, IntArrayRef pads) {
  for (const int64_t each : pads)
    if (each < 0) throw Unsupported{"negative padding"};
  return gradient_of(over(x), over(grad), [&](const P& y) { return plugrad::pad(y, pads.vec(), kMode); });
}
template <PadMode kMode> T& pad_backward_out(const T& grad, const T& x, IntArrayRef pads, T& out) {
  return write(out, pad_gradient<kMode>(grad, x, pads));
}
template <PadMode kMode> T pad_backward(const T& grad, const T& x, IntArrayRef pads) {
  return result(pad_gradient<kMode>(grad, x, pads));
}
template <PadMode kMode> T pad(const T& x, IntArrayRef pads) {
  for (const int64_t each : pads)
    if (each < 0) throw Unsupported{"negative padding"};
  return result(plugrad::pad(over(x), pads.vec(), kMode));
}
T repeat_rows(const T& repeats, std::optional<int64_t>) {
  const P counts = over(repeats, at::kLong);
  const P rows = plugrad::arange(0, counts.count(), 1, DType::i64, counts.device());
  return result(plugrad::repeat_interleave(rows, counts, 0));
}
T isin_of(const T& elements, const T& tests, bool unique, bool invert) {
  return result(plugrad::isin(over(elements), over(tests), unique, invert));
}
T& isin_out(const T& elements, const T& tests, bool unique, bool invert, T& out) {
  return write(out, plugrad::isin(over(elements), over(tests), unique, invert));
}
T& tril_out(const T& x, int64_t diagonal, T& out) { return write(out, plugrad::tril(over(x), diagonal)); }
T& triu_out(const T& x, int64_t diagonal, T& out) { return write(out, plugrad::triu(over(x), diagonal)); }
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::embedding, embedding>(library);
  kernel<o::embedding_dense_backward, embedding_backward>(library);
  kernel<o::index_select, index_select>(library);
  kernel<o::index_select_out, index_select_out>(library);
  kernel<o::gather_out, gather_out>(library);
  kernel<o::scatter_add_out, scatter_add_out>(library);
  kernel<o::scatter_src_out, scatter_out>(library);
  kernel<o::scatter_value_out, scatter_value_out>(library);
  kernel<o::scatter_reduce_two_out, scatter_reduce_out>(library);
  kernel<o::index_add_out, index_add_out>(library);
  kernel<o::index_copy_out, index_copy_out>(library);
  kernel<o::index_fill__int_Scalar, index_fill_>(library);
  kernel<o::index_fill__int_Tensor, index_fill_tensor_>(library);
  kernel<o::index_Tensor, indexed>(library);
  kernel<o::index_Tensor_out, indexed_out>(library);
  kernel<o::_index_put_impl_, index_put_>(library);
  kernel<o::masked_select, masked_select>(library);
  kernel<o::masked_select_out, masked_select_out>(library);
  kernel<o::masked_scatter_, masked_scatter_>(library);
  kernel<o::nonzero, nonzero>(library);
  kernel<o::nonzero_out, nonzero_out>(library);
  kernel<o::take, take>(library);
  kernel<o::take_out, take_out>(library);
  kernel<o::put_, put_>(library);
}

// Joining and rearranging.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::cat_out, cat_out>(library);
  kernel<o::tril_out, tril_out>(library);
  kernel<o::triu_out, triu_out>(library);
  kernel<o::flip, flip>(library);
  kernel<o::roll, roll>(library);
  kernel<o::constant_pad_nd, constant_pad>(library);
  kernel<o::reflection_pad1d_out, pad_out<PadMode::reflect>>(library);
  kernel<o::reflection_pad3d_out, pad_out<PadMode::reflect>>(library);
  kernel<o::replication_pad1d_out, pad_out<PadMode::replicate>>(library);
  kernel<o::replication_pad2d_out, pad_out<PadMode::replicate>>(library);
  kernel<o::replication_pad3d_out, pad_out<PadMode::replicate>>(library);
  kernel<o::reflection_pad2d, pad<PadMode::reflect>>(library);
  kernel<o::reflection_pad1d_backward_grad_input, pad_backward_out<PadMode::reflect>>(library);
  kernel<o::reflection_pad3d_backward_grad_input, pad_backward_out<PadMode::reflect>>(library);
  kernel<o::replication_pad1d_backward_grad_input, pad_backward_out<PadMode::replicate>>(library);
  kernel<o::reflection_pad2d_backward, pad_backward<PadMode::reflect>>(library);
  kernel<o::replication_pad2d_backward, pad_backward<PadMode::replicate>>(library);
  kernel<o::replication_pad3d_backward, pad_backward<PadMode::replicate>>(library);
  kernel<o::repeat_interleave_Tensor, repeat_rows>(library);
  kernel<o::isin_Tensor_Tensor, isin_of>(library);
  kernel<o::isin_Tensor_Tensor_out, isin_out>(library);
}
