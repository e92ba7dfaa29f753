// Searching, distances, and other functions of few callers.
#include <ATen/Operators.h>
#include <ATen/ScalarOps.h>
#include <bridge/adapt.hpp>
#include <bridge/gradient.hpp>
#include <bridge/promotion.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/contractions.hpp>
#include <plugrad/ops/distances.hpp>
#include <plugrad/ops/images.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/margin_losses.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/nonzero.hpp>
#include <plugrad/ops/piecewise.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/sets.hpp>
#include <plugrad/ops/smooth.hpp>
#include <plugrad/ops/special_values.hpp>
#include <plugrad/ops/statistics.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
P floating(const T& x) { return at::isFloatingType(x.scalar_type()) ? over(x) : over(x, at::kFloat); }

T rsub(const T& x, const T& other, const Scalar& alpha) { return other.sub(x, alpha); }
T rsub_scalar(const T& x, const Scalar& other, const Scalar& alpha) {
  return at::native::wrapped_scalar_tensor(other).sub(x, alpha);
}
T angle(const T& x) { return result(plugrad::angle(floating(x))); }
T& angle_out(const T& x, T& out) { return write(out, plugrad::angle(floating(x))); }
T logit(const T& x, std::optional<double> eps) { return result(plugrad::logit(floating(x), eps)); }
T& logit_out(const T& x, std::optional<double> eps, T& out) { return write(out, plugrad::logit(floating(x), eps)); }
T& logit_backward_out(const T& grad, const T& x, std::optional<double> eps, T& out) {
  return write(out, gradient_of(over(x), over(grad), [&](const P& y) { return plugrad::logit(y, eps); }));
}

bool equal(const T& a, const T& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Expected object of data type ", a.scalar_type(), " but got data type ",
              b.scalar_type(), " for argument 'other' in call to equal");
  if (a.sizes() != b.sizes()) return false;
  return !a.numel() || plugrad::all(plugrad::eq(over(a), over(b))).item<bool>();
}
T count_nonzero(const T& x, IntArrayRef axes) {
  if (!x.dim()) return result(plugrad::cast(plugrad::ne(over(x), 0), DType::i64));
  return result(plugrad::count_nonzero(over(x), shape_of(axes), false));
}
T nonzero_static(const T& x, int64_t size, int64_t fill) { return result(plugrad::nonzero_static(over(x), size, fill)); }
T trace(const T& x) { return result(plugrad::trace(over(x))); }
T histc(const T& x, int64_t bins, const Scalar& min, const Scalar& max) {
  return result(plugrad::histc(over(x), bins, min.toDouble(), max.toDouble()));
}

bool is_right(bool right, const std::optional<std::string_view>& side) { return side ? *side == "right" : right; }
T searchsorted(const T& sequence, const T& x, bool small, bool right, std::optional<std::string_view> side,
               const OptT& sorter) {
  if (sorter && sorter->defined()) throw Unsupported{"a sorter"};
  const ScalarType common = at::result_type(sequence, x);
  return result(plugrad::searchsorted(over(sequence, common), over(x, common), small, is_right(right, side)));
}
T searchsorted_scalar(const T& sequence, const Scalar& x, bool small, bool right, std::optional<std::string_view> side,
                      const OptT& sorter) {
  if (sorter && sorter->defined()) throw Unsupported{"a sorter"};
  return result(plugrad::searchsorted(over(sequence), number_of(x), small, is_right(right, side)));
}
T bucketize(const T& x, const T& boundaries, bool small, bool right) {
  const ScalarType common = at::result_type(x, boundaries);
  return result(plugrad::bucketize(over(x, common), over(boundaries, common), small, right));
}

T cdist(const T& a, const T& b, double p, std::optional<int64_t>) { return result(plugrad::cdist(over(a), over(b), p)); }
T cdist_backward(const T& grad, const T& a, const T& b, double p, const T&) {
  const P other = over(b);
  return result(gradient_of(over(a), over(grad), [&](const P& x) { return plugrad::cdist(x, other, p); }));
}
T& norm_out(const T& x, const std::optional<Scalar>& p, IntArrayRef axes, bool keepdim, T& out) {
  if (!x.dim()) return write(out, plugrad::abs(over(x)));
  return write(out, plugrad::linalg::vector_norm(over(x), p ? p->toDouble() : 2, shape_of(axes), keepdim));
}
T& renorm_out(const T& x, const Scalar& p, int64_t axis, const Scalar& most, T& out) {
  return write(out, plugrad::renorm(over(x), p.toDouble(), static_cast<int>(axis), most.toDouble()));
}
T& cross_out(const T& a, const T& b, int64_t axis, T& out) {
  return write(out, promoted(a, b, [&](const auto& x, const auto& y) {
                 return plugrad::cross(as_tensor(x, y), as_tensor(y, x), axis);
               }));
}

T& masked_fill_tensor_(T& x, const T& mask, const T& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
              " dimension(s).");
  if (is_number(value)) return write(x, plugrad::masked_fill(over(x), over(mask), number_of(value.item())));
  return write(x, plugrad::masked_fill(over(x), over(mask), over(value, x.scalar_type())));
}
T channel_shuffle(const T& x, int64_t groups) { return result(plugrad::channel_shuffle(over(x), groups)); }

T prelu(const T& x, const T& weight) {
  const P value = over(x);
  return result(plugrad::where(plugrad::gt(value, 0), value, plugrad::mul(over(weight), value)));
}
// PyTorch sums the gradient of the weight to its shape afterwards.
std::tuple<T, T> prelu_backward(const T& grad, const T& x, const T& weight) {
  const P value = over(x), g = over(grad), positive = plugrad::gt(value, 0);
  return {result(plugrad::where(positive, g, plugrad::mul(g, over(weight)))),
          result(plugrad::where(positive, 0, plugrad::mul(g, value)))};
}
std::tuple<T, T> log_sigmoid(const T& x) {
  return {result(plugrad::logsigmoid(over(x))), unused({0}, x.scalar_type(), x.device().index())};
}
T& glu_backward_out(const T& grad, const T& x, int64_t axis, T& out) {
  return write(out, gradient_of(over(x), over(grad), [&](const P& y) { return plugrad::glu(y, static_cast<int>(axis)); }));
}
T glu_backward(const T& grad, const T& x, int64_t axis) {
  return result(gradient_of(over(x), over(grad), [&](const P& y) { return plugrad::glu(y, static_cast<int>(axis)); }));
}

plugrad::ScatterReduction index_reduction(std::string_view name) {
  if (name == "prod") return plugrad::ScatterReduction::prod;
  if (name == "mean") return plugrad::ScatterReduction::mean;
  return name == "amax" ? plugrad::ScatterReduction::amax : plugrad::ScatterReduction::amin;
}
T& index_reduce_out(const T& x, int64_t axis, const T& index, const T& source, std::string_view reduce, bool with_self,
                    T& out) {
  if (!x.dim()) throw Unsupported{"rank 0"};
  return write(out, plugrad::index_reduce(over(x), static_cast<int>(axis), over(index, at::kLong), over(source),
                                          index_reduction(reduce), with_self));
}
T multi_margin_loss(const T& x, const T& target, const Scalar& p, const Scalar& margin, const OptT& weight,
                    int64_t reduction) {
  if (x.dim() != 2) throw Unsupported{"a single row"};
  constexpr plugrad::Reduction kReductions[] = {plugrad::Reduction::none, plugrad::Reduction::mean, plugrad::Reduction::sum};
  return result(plugrad::multi_margin_loss(over(x), over(target), p.toLong(), margin.toDouble(), over(weight),
                                           kReductions[reduction]));
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::rsub_Tensor, rsub>(library);
  kernel<o::rsub_Scalar, rsub_scalar>(library);
  kernel<o::angle, angle>(library);
  kernel<o::angle_out, angle_out>(library);
  kernel<o::logit, logit>(library);
  kernel<o::logit_out, logit_out>(library);
  kernel<o::logit_backward_grad_input, logit_backward_out>(library);
  adapted<o::sgn_out, plugrad::sign>(library);
  adapted<o::glu_out, plugrad::glu>(library);
  kernel<o::glu_backward, glu_backward>(library);
  kernel<o::glu_backward_grad_input, glu_backward_out>(library);
  kernel<o::equal, equal>(library);
  kernel<o::count_nonzero_dim_IntList, count_nonzero>(library);
  kernel<o::nonzero_static, nonzero_static>(library);
  kernel<o::trace, trace>(library);
  kernel<o::histc, histc>(library);
  kernel<o::searchsorted_Tensor, searchsorted>(library);
  kernel<o::searchsorted_Scalar, searchsorted_scalar>(library);
  kernel<o::bucketize_Tensor, bucketize>(library);
  kernel<o::_cdist_forward, cdist>(library);
  kernel<o::_cdist_backward, cdist_backward>(library);
  kernel<o::norm_out, norm_out>(library);
  kernel<o::renorm_out, renorm_out>(library);
  kernel<o::linalg_cross_out, cross_out>(library);
  kernel<o::masked_fill__Tensor, masked_fill_tensor_>(library);
  kernel<o::channel_shuffle, channel_shuffle>(library);
  kernel<o::_prelu_kernel, prelu>(library);
  kernel<o::_prelu_kernel_backward, prelu_backward>(library);
  kernel<o::log_sigmoid_forward, log_sigmoid>(library);
  kernel<o::index_reduce_out, index_reduce_out>(library);
  kernel<o::multi_margin_loss, multi_margin_loss>(library);
}
