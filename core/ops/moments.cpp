#include <plugrad/ops/moments.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/contractions.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <string>

namespace plugrad {
namespace {
// How many elements are not NaN, in this dtype.
Tensor count_of_numbers(const Tensor& x, const Shape& axes, bool keepdim, DType dtype) {
  return cast(sum(logical_not(isnan(x.detach())), axes, keepdim), dtype);
}
Tensor without_nan(const Tensor& x) { return is_inexact(x.dtype()) ? where(isnan(x), 0, x) : x; }
}  // namespace

Tensor nansum(const Tensor& x, const Shape& axes, bool keepdim) {
  require_defined(x, "nansum");
  return sum(without_nan(x), axes, keepdim);
}

Tensor nanmean(const Tensor& x, const Shape& axes, bool keepdim) {
  require_inexact("nanmean", x);
  const Tensor wide = at_least_f32(x);
  return cast(div(sum(without_nan(wide), axes, keepdim), count_of_numbers(x, axes, keepdim, part_of(wide.dtype()))),
              x.dtype());
}

Tensor nanvar(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  require_floating("nanvar", x);
  const Shape over = normal_axes(axes, x.rank(), "nanvar");
  const Tensor wide = at_least_f32(x), centred = without_nan(sub(wide, nanmean(wide, over, true)));
  const Tensor count = count_of_numbers(x, over, keepdim, wide.dtype());
  const Tensor divisor = where(eq(count, 0), 0, maximum(sub(count, correction), 0));
  return cast(div(sum(mul(centred, centred), over, keepdim), divisor), x.dtype());
}

Tensor nanstd(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  require_floating("nanstd", x);
  const Tensor variance = nanvar(at_least_f32(x), axes, keepdim, correction), none = eq(variance, 0);
  return cast(where(none, 0, sqrt(where(none, 1, variance))), x.dtype());
}

std::vector<Tensor> var_mean(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  return {var(x, axes, keepdim, correction), mean(x, axes, keepdim)};
}
std::vector<Tensor> std_mean(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  return {stddev(x, axes, keepdim, correction), mean(x, axes, keepdim)};
}

// --- Several variables.

namespace {
void require_weights(const Tensor& weights, int64_t observations, const char* role) {
  if (weights.defined() && weights.shape() != Shape{observations})
    refuse("cov", std::string(role) + " has shape " + weights.shape().text() + ": expected (" +
                      std::to_string(observations) + ",), one for each observation");
}

Tensor weights_of(const Tensor& fweights, const Tensor& aweights, DType dtype) {
  if (!fweights.defined()) return aweights.defined() ? cast(aweights, dtype) : aweights;
  const Tensor counts = cast(fweights, dtype);
  return aweights.defined() ? mul(counts, cast(aweights, dtype)) : counts;
}

// rows: (m, n).
Tensor weighted_covariance(const Tensor& rows, const Tensor& weights, const Tensor& aweights, int64_t correction) {
  const Tensor total = sum(weights), centred = sub(rows, div(sum(mul(rows, weights), {1}, true), total));
  Tensor divisor = sub(total, correction);
  if (aweights.defined() && correction)
    divisor = sub(total, mul(div(sum(mul(weights, cast(aweights, weights.dtype()))), total), correction));
  return div(matmul(centred, adjoint(mul(centred, weights))), maximum(divisor, 0));
}
}  // namespace

Tensor cov(const Tensor& x, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  require_defined(x, "cov");
  if (x.rank() > 2) refuse("cov", "x has shape " + x.shape().text() + ": expected (m, n), or (n) for one variable");
  if (fweights.defined()) require_integer("cov", fweights, "fweights");
  if (aweights.defined()) require_floating("cov", aweights);
  const DType dtype = floating_type(x.dtype());
  const Tensor numbers = at_least_f32(cast(x, dtype)), rows = x.rank() == 2 ? numbers : reshape(numbers, {1, x.count()});
  require_weights(fweights, rows.size(1), "fweights");
  require_weights(aweights, rows.size(1), "aweights");
  const Tensor weights = weights_of(fweights, aweights, plugrad::part_of(rows.dtype()));
  Tensor out;
  if (weights.defined()) {
    out = weighted_covariance(rows, weights, aweights, correction);
  } else {
    const Tensor centred = sub(rows, mean(rows, {1}, true));
    const double divisor = static_cast<double>(std::max<int64_t>(rows.size(1) - correction, 0));
    out = div(matmul(centred, adjoint(centred)), divisor);
  }
  return cast(rows.size(0) == 1 ? squeeze(out) : out, dtype);
}

Tensor corrcoef(const Tensor& x) {
  require_defined(x, "corrcoef");
  const Tensor c = cov(at_least_f32(x));
  if (!c.rank()) return cast(div(c, c), floating_type(x.dtype()));
  const Tensor deviations = sqrt(real(einsum("ii->i", {c})));
  if (is_complex(c.dtype())) return div(div(c, unsqueeze(deviations, 1)), deviations);
  return cast(clamp(div(div(c, unsqueeze(deviations, 1)), deviations), -1, 1), floating_type(x.dtype()));
}

// --- Sampled functions.

namespace {
Tensor middles(const Tensor& y, int axis) { return add(slice(y, axis, 1, y.size(axis)), slice(y, axis, 0, -1)); }
Tensor distances(const Tensor& x, int axis) { return sub(slice(x, axis, 1, x.size(axis)), slice(x, axis, 0, -1)); }
Tensor floating(const Tensor& x) { return cast(x, floating_type(x.dtype())); }

// A vector along the axis of a tensor of this rank, with extents of 1 elsewhere.
Tensor along(const Tensor& vector, int axis, int rank) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(i == axis ? vector.count() : 1);
  return reshape(vector, shape);
}
}  // namespace

namespace {
// Twice the areas between neighbours.
Tensor areas(const char* name, const Tensor& y, const Tensor& x, int at) {
  require_defined(x, name);
  if (x.rank() > y.rank() || (x.rank() == 1 && x.size(0) != y.size(at)))
    refuse(name, "x is " + x.shape().text() + " and y " + y.shape().text() + ": expected a point for each element");
  const Tensor points = x.rank() == 1 ? along(x, at, y.rank()) : expand(x, y.shape());
  return mul(middles(floating(y), at), distances(floating(points), at));
}
int axis_of(const char* name, const Tensor& y, int axis) {
  require_defined(y, name);
  return normal_axis(axis, y.rank(), name);
}
}  // namespace

Tensor trapezoid(const Tensor& y, double dx, int axis) {
  const int at = axis_of("trapezoid", y, axis);
  if (are_halves(y)) return rounded_once(y, [&](const Tensor& wide) { return trapezoid(wide, dx, at); });
  return mul(sum(middles(floating(y), at), {at}), dx / 2);
}
Tensor trapezoid(const Tensor& y, const Tensor& x, int axis) {
  const int at = axis_of("trapezoid", y, axis);
  if (are_halves(y, x)) return rounded_once(y, [&](const Tensor& wide) { return trapezoid(wide, at_least_f32(x), at); });
  return mul(sum(areas("trapezoid", y, x, at), {at}), 0.5);
}
Tensor cumulative_trapezoid(const Tensor& y, double dx, int axis) {
  const int at = axis_of("cumulative_trapezoid", y, axis);
  if (are_halves(y)) return rounded_once(y, [&](const Tensor& wide) { return cumulative_trapezoid(wide, dx, at); });
  return mul(cumsum(middles(floating(y), at), at), dx / 2);
}
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int axis) {
  const int at = axis_of("cumulative_trapezoid", y, axis);
  if (are_halves(y, x))
    return rounded_once(y, [&](const Tensor& wide) { return cumulative_trapezoid(wide, at_least_f32(x), at); });
  return mul(cumsum(areas("cumulative_trapezoid", y, x, at), at), 0.5);
}

namespace {
// Elements of an axis: `count` from `first` on; `first` may count from the end.
Tensor part(const Tensor& x, int axis, int64_t first, int64_t count) {
  const int64_t start = first < 0 ? first + x.size(axis) : first;
  return slice(x, axis, start, start + count);
}

// The slope at an end of the axis by three elements, a outermost; h and k are the distances between them.
Tensor end_slope(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& h, const Tensor& k) {
  const Tensor near = div(neg(add(mul(h, 2), k)), mul(h, add(h, k))), middle = div(add(h, k), mul(h, k));
  return sub(add(mul(near, a), mul(middle, b)), mul(div(h, mul(k, add(h, k))), c));
}

// h: the distances between the elements; they broadcast to x's differences.
Tensor slopes(const Tensor& x, const Tensor& h, int axis, int64_t edge_order) {
  const int64_t n = x.size(axis), inside = n - 2;
  const Tensor differences = div(distances(x, axis), h);
  const Tensor before = part(h, axis, 0, inside), after = part(h, axis, 1, inside);
  const Tensor middle =
      div(add(mul(part(differences, axis, 0, inside), after), mul(part(differences, axis, 1, inside), before)),
          add(before, after));
  Tensor first = part(differences, axis, 0, 1), last = part(differences, axis, -1, 1);
  if (edge_order == 2) {
    const auto element = [&](int64_t i) { return part(x, axis, i, 1); };
    first = end_slope(element(0), element(1), element(2), part(h, axis, 0, 1), part(h, axis, 1, 1));
    last = neg(end_slope(element(-1), element(-2), element(-3), part(h, axis, -1, 1), part(h, axis, -2, 1)));
  }
  return cat({first, middle, last}, axis);
}

Tensor slopes_along(const Tensor& x, const Tensor& h, int axis, int64_t edge_order) {
  if (edge_order < 1 || edge_order > 2)
    refuse("gradient", "edge_order is " + std::to_string(edge_order) + ": expected 1 or 2");
  if (x.size(axis) <= edge_order)
    refuse("gradient", "axis " + std::to_string(axis) + " of " + x.shape().text() + " has too few elements: expected " +
                           std::to_string(edge_order + 1) + " or more");
  return slopes(x, h, axis, edge_order);
}

void require_count(size_t given, size_t axes) {
  if (given != axes)
    refuse("gradient", std::to_string(given) + " spacings for " + std::to_string(axes) + " axes: give one for each");
}
}  // namespace

namespace {
// The results of f on x in f32 at least, rounded to x's dtype.
template <class F> std::vector<Tensor> all_rounded_once(const Tensor& x, F f) {
  std::vector<Tensor> all = f(at_least_f32(x));
  for (Tensor& each : all) each = cast(each, x.dtype());
  return all;
}
}  // namespace

std::vector<Tensor> gradient(const Tensor& x, double spacing, const Shape& axes, int64_t edge_order) {
  require_defined(x, "gradient");
  const size_t count = normal_axes(axes, x.rank(), "gradient").size();
  return gradient(x, std::vector<double>(count, spacing), axes, edge_order);
}

std::vector<Tensor> gradient(const Tensor& x, const std::vector<double>& spacing, const Shape& axes, int64_t edge_order) {
  if (are_halves(x))
    return all_rounded_once(x, [&](const Tensor& wide) { return gradient(wide, spacing, axes, edge_order); });
  require_defined(x, "gradient");
  const Shape over = normal_axes(axes, x.rank(), "gradient");
  require_count(spacing.size(), over.size());
  std::vector<Tensor> all;
  for (size_t i = 0; i < over.size(); ++i) {
    const int at = static_cast<int>(over[i]);
    const Tensor values = floating(x);
    Shape shape = x.shape();
    std::ranges::fill(shape, 1);
    shape[static_cast<size_t>(at)] = std::max<int64_t>(x.size(at) - 1, 0);
    const Tensor h = full(shape, spacing[i], values.dtype(), x.device());
    all.push_back(slopes_along(values, h, at, edge_order));
  }
  return all;
}

std::vector<Tensor> gradient(const Tensor& x, const std::vector<Tensor>& spacing, const Shape& axes, int64_t edge_order) {
  if (are_halves(x))
    return all_rounded_once(x, [&](const Tensor& wide) {
      std::vector<Tensor> points = spacing;
      for (Tensor& each : points) each = detail::wide_argument(each);
      return gradient(wide, points, axes, edge_order);
    });
  require_defined(x, "gradient");
  const Shape over = normal_axes(axes, x.rank(), "gradient");
  require_count(spacing.size(), over.size());
  std::vector<Tensor> all;
  for (size_t i = 0; i < over.size(); ++i) {
    const int at = static_cast<int>(over[i]);
    require_defined(spacing[i], "gradient");
    if (spacing[i].shape() != Shape{x.size(at)})
      refuse("gradient", "coordinates have shape " + spacing[i].shape().text() + ": expected (" +
                             std::to_string(x.size(at)) + ",), one for each element of axis " + std::to_string(at));
    all.push_back(slopes_along(floating(x), distances(along(floating(spacing[i]), at, x.rank()), at), at, edge_order));
  }
  return all;
}

}  // namespace plugrad
