#include <plugrad/ops/statistics.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/sorting.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad {
namespace {
// The elements of a quantile, as the last axis.
struct Population {
  Tensor lines;
  Shape kept;   // the shape of x with extent 1 at the axes
  Shape whole;  // without them

  Population(const char* name, const Tensor& x, const Shape& axes) : kept(x.shape()) {
    const Shape over = normal_axes(axes, x.rank(), name);
    Shape order;
    for (int i = 0; i < x.rank(); ++i)
      if (std::ranges::find(over, i) == over.end()) order.push_back(i), whole.push_back(x.size(i));
    int64_t count = 1;
    for (const int64_t axis : over) {
      order.push_back(axis);
      count *= x.size(static_cast<int>(axis));
      kept[static_cast<size_t>(axis)] = 1;
    }
    if (!count) refuse(name, "no elements: x has shape " + x.shape().text());
    Shape shape = whole;
    shape.push_back(count);
    lines = reshape(permute(x, order), shape);
  }
};

// The places (.., k) of k quantiles among the sorted elements of each line; NaNs are the last of them.
Tensor places_of(const Tensor& lines, const Tensor& q, bool ignores_nan) {
  const int64_t n = lines.size(-1);
  const Tensor nans = cast(sum(isnan(lines.detach()), {-1}, true), q.dtype());
  if (ignores_nan) return maximum(mul(sub(static_cast<double>(n - 1), nans), q), 0);
  return where(gt(nans, 0), static_cast<double>(n - 1), mul(q, static_cast<double>(n - 1)));
}

Tensor at_places(const Tensor& sorted, const Tensor& places) {
  return gather(sorted, -1, cast(places.detach(), DType::i64));
}

Tensor interpolated(const Tensor& sorted, const Tensor& places, Interpolation interpolation) {
  if (interpolation == Interpolation::higher) return at_places(sorted, ceil(places));
  if (interpolation == Interpolation::nearest) return at_places(sorted, round(places));
  const Tensor below = floor(places), low = at_places(sorted, below);
  if (interpolation == Interpolation::lower) return low;
  const Tensor distance = sub(at_places(sorted, ceil(places)), low), part = sub(places, below);
  // Equal infinities have distance 0.
  const Tensor steps = where(isnan(distance), 0, distance);
  return add(low, interpolation == Interpolation::midpoint ? mul(steps, 0.5) : mul(steps, part));
}

Tensor is_part(const Tensor& q) { return logical_and(ge(q, 0), le(q, 1)); }

void require_parts(const char* name, const std::vector<double>& q) {
  for (const double each : q)
    if (!(each >= 0 && each <= 1)) refuse(name, "q is " + number_text(each) + ": give a number from 0 to 1");
}
void require_parts(const char* name, const Tensor& q) {
  require_floating(name, q);
  if (q.rank() > 1) refuse(name, "q has shape " + q.shape().text() + ": give a number or one axis");
  if (!observe::hides_elements() && !all(is_part(q)).item<bool>())
    refuse(name, "an element of q is outside [0, 1]: give others");
}

// q: (k).
Tensor quantiles(const char* name, const Tensor& x, const Tensor& q, const Shape& axes, bool keepdim,
                 Interpolation interpolation, bool ignores_nan) {
  const Population population(name, x, axes);
  Tensor parts = q.rank() ? q : unsqueeze(q, 0);
  const Tensor fits = is_part(parts);
  if (observe::hides_elements()) parts = where(fits, parts, 0);
  const Tensor places = places_of(population.lines, parts, ignores_nan), sorted = sort(population.lines).values;
  Tensor last = interpolated(sorted, places, interpolation);
  if (observe::hides_elements()) last = where(fits, last, std::nan(""));  // no step can refuse them
  Shape shape = q.rank() ? Shape{q.size(0)} : Shape{};
  for (const int64_t extent : keepdim ? population.kept : population.whole) shape.push_back(extent);
  return reshape(movedim(last, {-1}, {0}), shape);
}

// As x's dtype, but in f32 at least.
Tensor wide_of(const char* name, const Tensor& x) {
  require_defined(x, name);
  return at_least_f32(cast(x, floating_type(x.dtype())));
}

Tensor quantile_of(const char* name, const Tensor& x, const Tensor& q, const Shape& axes, bool keepdim,
                   Interpolation interpolation, bool ignores_nan) {
  const Tensor wide = wide_of(name, x);
  require_parts(name, q);
  if (q.device() != x.device()) throw_not_together(name, x, q);
  const Tensor out = quantiles(name, wide, cast(q, wide.dtype()), axes, keepdim, interpolation, ignores_nan);
  return cast(out, floating_type(x.dtype()));
}

// shape: () or (k).
Tensor quantile_of(const char* name, const Tensor& x, const std::vector<double>& q, const Shape& shape, const Shape& axes,
                   bool keepdim, Interpolation interpolation, bool ignores_nan) {
  const Tensor wide = wide_of(name, x);
  require_parts(name, q);
  std::vector<Tensor> parts;
  for (const double each : q) parts.push_back(full({1}, each, wide.dtype(), x.device()));
  const Tensor all = reshape(parts.empty() ? zeros({0}, wide.dtype(), x.device()) : cat(parts), shape);
  return cast(quantiles(name, wide, all, axes, keepdim, interpolation, ignores_nan), floating_type(x.dtype()));
}
Shape length_of(const std::vector<double>& q) { return {static_cast<int64_t>(q.size())}; }
}  // namespace

Tensor quantile(const Tensor& x, double q, const Shape& axes, bool keepdim, Interpolation interpolation) {
  return quantile_of("quantile", x, {q}, {}, axes, keepdim, interpolation, false);
}
Tensor quantile(const Tensor& x, const std::vector<double>& q, const Shape& axes, bool keepdim,
                Interpolation interpolation) {
  return quantile_of("quantile", x, q, length_of(q), axes, keepdim, interpolation, false);
}
Tensor quantile(const Tensor& x, const Tensor& q, const Shape& axes, bool keepdim, Interpolation interpolation) {
  return quantile_of("quantile", x, q, axes, keepdim, interpolation, false);
}
Tensor nanquantile(const Tensor& x, double q, const Shape& axes, bool keepdim, Interpolation interpolation) {
  return quantile_of("nanquantile", x, {q}, {}, axes, keepdim, interpolation, true);
}
Tensor nanquantile(const Tensor& x, const std::vector<double>& q, const Shape& axes, bool keepdim,
                   Interpolation interpolation) {
  return quantile_of("nanquantile", x, q, length_of(q), axes, keepdim, interpolation, true);
}
Tensor nanquantile(const Tensor& x, const Tensor& q, const Shape& axes, bool keepdim, Interpolation interpolation) {
  return quantile_of("nanquantile", x, q, axes, keepdim, interpolation, true);
}

}  // namespace plugrad
