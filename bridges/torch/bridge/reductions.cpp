// Reductions, scans and sorting.
#include <ATen/Operators.h>
#include <bridge/adapt.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/moments.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/sets.hpp>
#include <plugrad/ops/statistics.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
using Reduction = P (*)(const P&, const Shape&, bool);
using Axes = at::OptionalIntArrayRef;

Shape axes_of(const Axes& axes) { return axes ? shape_of(*axes) : Shape(); }

// Reductions of a tensor of rank 0 have nothing to reduce, but PyTorch lets them name an axis: it is given one.
P with_axis(const P& x) { return x.rank() ? x : plugrad::reshape(x, {1}); }
P reduced(Reduction f, const P& x, const Shape& axes, bool keepdim) {
  const P y = f(with_axis(x), axes, keepdim && x.rank());
  return x.rank() ? y : plugrad::reshape(y, {});
}
// Floating results are computed from converted elements, whole numbers as they are.
P in_dtype(const T& x, ScalarType dtype) { return at::isFloatingType(dtype) ? over(x, dtype) : over(x); }

template <Reduction kFunction> T& typed_out(const T& x, Axes axes, bool keepdim, std::optional<ScalarType>, T& out) {
  return write(out, reduced(kFunction, in_dtype(x, out.scalar_type()), axes_of(axes), keepdim));
}
template <Reduction kFunction> T& plain_out(const T& x, IntArrayRef axes, bool keepdim, T& out) {
  return write(out, reduced(kFunction, over(x), shape_of(axes), keepdim));
}
template <Reduction kFunction> T summed(const T& x, Axes axes, bool keepdim, std::optional<ScalarType> dtype) {
  const ScalarType type = dtype.value_or(at::isIntegralType(x.scalar_type(), true) ? at::kLong : x.scalar_type());
  return result(plugrad::cast(reduced(kFunction, in_dtype(x, type), axes_of(axes), keepdim), dtype_of(type)));
}
T sum_all(const T& x, std::optional<ScalarType> dtype) { return summed<plugrad::sum>(x, std::nullopt, false, dtype); }
template <Reduction kFunction> T all_of(const T& x) { return result(kFunction(over(x), {}, false)); }

template <Reduction kFunction> T& truth_out(const T& x, int64_t axis, bool keepdim, T& out) {
  return write(out, reduced(kFunction, over(x), {axis}, keepdim));
}
template <Reduction kFunction> T& truth_axes_out(const T& x, Axes axes, bool keepdim, T& out) {
  if (axes && axes->empty()) throw Unsupported{"an empty list of axes"};
  return write(out, reduced(kFunction, over(x), axes_of(axes), keepdim));
}
template <Reduction kFunction> T& truth_all_out(const T& x, T& out) { return write(out, kFunction(over(x), {}, false)); }
template <Reduction kFunction> T& position_out(const T& x, std::optional<int64_t> axis, bool keepdim, T& out) {
  TORCH_CHECK(x.numel() || axis, "Expected reduction dim to be specified for input.numel() == 0.");
  return write(out, reduced(kFunction, over(x), axis ? Shape{*axis} : Shape(), keepdim));
}

double correction_of(const std::optional<Scalar>& correction) { return correction ? correction->toDouble() : 1; }
template <auto kFunction> T spread(const T& x, Axes axes, const std::optional<Scalar>& correction, bool keepdim) {
  const P y = with_axis(over(x));
  const P made = kFunction(y, axes_of(axes), keepdim && x.dim(), correction_of(correction));
  return result(x.dim() ? made : plugrad::reshape(made, {}));
}
template <auto kFunction>
T& spread_out(const T& x, Axes axes, const std::optional<Scalar>& correction, bool keepdim, T& out) {
  const P made = kFunction(with_axis(over(x)), axes_of(axes), keepdim && x.dim(), correction_of(correction));
  return write(out, x.dim() ? made : plugrad::reshape(made, {}));
}
template <auto kFunction>
std::tuple<T, T> spread_and_mean(const T& x, Axes axes, const std::optional<Scalar>& correction, bool keepdim) {
  const std::vector<P> made = kFunction(with_axis(over(x)), axes_of(axes), keepdim && x.dim(), correction_of(correction));
  const auto scalar = [&](const P& y) { return x.dim() ? y : plugrad::reshape(y, {}); };
  return {result(scalar(made[0])), result(scalar(made[1]))};
}

T& cumsum_out(const T& x, int64_t axis, std::optional<ScalarType>, T& out) {
  const P y = over(x, out.scalar_type());
  return write(out, x.dim() ? plugrad::cumsum(y, static_cast<int>(axis)) : plugrad::clone(y));
}
T& cumprod_out(const T& x, int64_t axis, std::optional<ScalarType>, T& out) {
  const P y = over(x, out.scalar_type());
  return write(out, x.dim() ? plugrad::cumprod(y, static_cast<int>(axis)) : plugrad::clone(y));
}
template <auto kFunction> void running(const T& x, T& values, T& indices, int64_t axis) {
  const plugrad::ValuesIndices made = call_with(+kFunction, x, axis);
  write(values, made.values), write(indices, made.indices);
}

T prod(const T& x, std::optional<ScalarType> dtype) {
  const ScalarType type = dtype.value_or(at::isIntegralType(x.scalar_type(), true) ? at::kLong : x.scalar_type());
  return result(plugrad::prod(over(x, type), {}, false));
}
T& prod_out(const T& x, int64_t axis, bool keepdim, std::optional<ScalarType>, T& out) {
  return write(out, reduced(plugrad::prod, over(x, out.scalar_type()), {axis}, keepdim));
}

plugrad::ValuesIndices sorted(const P& x, int axis, bool descending, bool stable) {
  return plugrad::sort(x, axis, descending, stable);
}
std::tuple<T&, T&> sort_out(const T& x, std::optional<bool> stable, int64_t axis, bool descending, T& values, T& indices) {
  const plugrad::ValuesIndices made = call_with(sorted, x, axis, descending, stable.value_or(false));
  write(values, made.values), write(indices, made.indices);
  return {values, indices};
}
std::tuple<T&, T&> topk_out(const T& x, int64_t k, int64_t axis, bool largest, bool in_order, T& values, T& indices) {
  const bool lifts = x.dim() == 0;
  const plugrad::ValuesIndices made = plugrad::topk(with_axis(over(x)), k, static_cast<int>(axis), largest, in_order);
  const auto scalar = [&](const P& y) { return lifts ? plugrad::reshape(y, {}) : y; };
  write(values, scalar(made.values)), write(indices, scalar(made.indices));
  return {values, indices};
}
std::tuple<T&, T&> kthvalue_out(const T& x, int64_t k, int64_t axis, bool keepdim, T& values, T& indices) {
  if (!x.dim()) throw Unsupported{"rank 0"};
  const plugrad::ValuesIndices made = plugrad::kthvalue(over(x), k, static_cast<int>(axis), keepdim);
  write(values, made.values), write(indices, made.indices);
  return {values, indices};
}
template <auto kFunction>
std::tuple<T&, T&> with_indices_out(const T& x, int64_t axis, bool keepdim, T& values, T& indices) {
  const plugrad::ValuesIndices made = call_with(+kFunction, x, axis, keepdim && x.dim());
  write(values, made.values), write(indices, made.indices);
  return {values, indices};
}
template <P (*kFunction)(const P&)> T of_all(const T& x) { return result(kFunction(over(x))); }

T& logsumexp_out(const T& x, IntArrayRef axes, bool keepdim, T& out) {
  return write(out, reduced(plugrad::logsumexp, over(x, out.scalar_type()), shape_of(axes), keepdim));
}
T& vector_norm_out(const T& x, const Scalar& order, Axes axes, bool keepdim, std::optional<ScalarType>, T& out) {
  const P y = plugrad::linalg::vector_norm(with_axis(over(x, out.scalar_type())), order.toDouble(), axes_of(axes),
                                           keepdim && x.dim());
  return write(out, x.dim() ? y : plugrad::reshape(y, {}));
}
std::tuple<T&, T&> aminmax_out(const T& x, std::optional<int64_t> axis, bool keepdim, T& min, T& max) {
  const plugrad::MinMax made = plugrad::aminmax(with_axis(over(x)), axis ? Shape{*axis} : Shape(), keepdim && x.dim());
  const auto scalar = [&](const P& y) { return x.dim() ? y : plugrad::reshape(y, {}); };
  return {write(min, scalar(made.min)), write(max, scalar(made.max))};
}
T bincount(const T& x, const OptT& weights, int64_t least) {
  return result(plugrad::bincount(over(x), over(weights), least));
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::sum_IntList_out, typed_out<plugrad::sum>>(library);
  kernel<o::sum_dim_IntList, summed<plugrad::sum>>(library);
  kernel<o::nansum, summed<plugrad::nansum>>(library);
  kernel<o::sum, sum_all>(library);
  kernel<o::nansum_out, typed_out<plugrad::nansum>>(library);
  kernel<o::mean_out, typed_out<plugrad::mean>>(library);
  kernel<o::amax_out, plain_out<plugrad::amax>>(library);
  kernel<o::amin_out, plain_out<plugrad::amin>>(library);
  kernel<o::max, all_of<plugrad::max>>(library);
  kernel<o::min, all_of<plugrad::min>>(library);
  kernel<o::any_out, truth_out<plugrad::any>>(library);
  kernel<o::all_out, truth_out<plugrad::all>>(library);
  kernel<o::any_dims_out, truth_axes_out<plugrad::any>>(library);
  kernel<o::all_dims_out, truth_axes_out<plugrad::all>>(library);
  kernel<o::any_all_out, truth_all_out<plugrad::any>>(library);
  kernel<o::all_all_out, truth_all_out<plugrad::all>>(library);
  kernel<o::argmax_out, position_out<plugrad::argmax>>(library);
  kernel<o::argmin_out, position_out<plugrad::argmin>>(library);
  kernel<o::max_dim_max, with_indices_out<plugrad::max_with_indices>>(library);
  kernel<o::min_dim_min, with_indices_out<plugrad::min_with_indices>>(library);
  kernel<o::var_correction, spread<plugrad::var>>(library);
  kernel<o::std_correction, spread<plugrad::stddev>>(library);
  kernel<o::var_correction_out, spread_out<plugrad::var>>(library);
  kernel<o::std_correction_out, spread_out<plugrad::stddev>>(library);
  kernel<o::var_mean_correction, spread_and_mean<plugrad::var_mean>>(library);
  kernel<o::std_mean_correction, spread_and_mean<plugrad::std_mean>>(library);
}

// Scans, sorting and statistics.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::cumsum_out, cumsum_out>(library);
  kernel<o::cumprod_out, cumprod_out>(library);
  kernel<o::_cummax_helper, running<plugrad::cummax>>(library);
  kernel<o::_cummin_helper, running<plugrad::cummin>>(library);
  adapted<o::_logcumsumexp, plugrad::logcumsumexp>(library);
  adapted<o::_logcumsumexp_out, plugrad::logcumsumexp>(library);
  kernel<o::prod, prod>(library);
  kernel<o::prod_int_out, prod_out>(library);
  kernel<o::sort_values_stable, sort_out>(library);
  kernel<o::topk_values, topk_out>(library);
  kernel<o::kthvalue_values, kthvalue_out>(library);
  kernel<o::median, of_all<pick<P(const P&)>(plugrad::median)>>(library);
  kernel<o::nanmedian, of_all<pick<P(const P&)>(plugrad::nanmedian)>>(library);
  kernel<o::median_dim_values, with_indices_out<pick<plugrad::ValuesIndices(const P&, int, bool)>(plugrad::median)>>(
      library);
  kernel<o::nanmedian_dim_values, with_indices_out<pick<plugrad::ValuesIndices(const P&, int, bool)>(plugrad::nanmedian)>>(
      library);
  adapted<o::mode, plugrad::mode>(library);
  kernel<o::logsumexp_out, logsumexp_out>(library);
  kernel<o::linalg_vector_norm_out, vector_norm_out>(library);
  kernel<o::aminmax_out, aminmax_out>(library);
  kernel<o::bincount, bincount>(library);
}
