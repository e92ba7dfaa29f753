#include <core/ops/argument.hpp>
#include <core/ops/positions.hpp>
#include <core/ops/run.hpp>
#include <core/ops/scatter.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/sorting.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
// The number of times an index names each element of the part, in the dtype of positions.
Tensor times_named(const Tensor& part, int axis, const Tensor& index) {
  const DType dtype = position_dtype(part, std::max(part.count(), index.count()));
  return scatter_add(zeros(part.shape(), dtype, part.device()), axis, index, ones(index.shape(), dtype, part.device()));
}

// --- Sums.

Tensor quotient(const Tensor& sums, const Tensor& counts) {
  const Tensor by = cast(counts, sums.dtype());
  return is_inexact(sums.dtype()) ? div(sums, by) : floor_divide(sums, by);
}

Tensor summed(const ScatterTarget& target, const Tensor& source, bool mean, bool include_self) {
  const Tensor times = times_named(target.part, target.axis, target.index);
  const Tensor start = include_self ? target.part : where(gt(times, 0), 0, target.part);
  const Tensor sums = scatter_add(start, target.axis, target.index, source);
  if (!mean) return sums;
  return quotient(sums, include_self ? add(times, 1) : maximum(times, 1));
}

// --- Further reductions: the elements for a place are sorted next to each other, and joined by doubling distances.

using Join = Tensor (*)(const Tensor&, const Tensor&);

// The elements of the source for each element of the part, joined, where there are some.
struct Groups {
  Tensor written, joined;
};

Groups groups_of(const ScatterTarget& target, const Tensor& source, Join join) {
  const int axis = target.axis;
  const int64_t length = target.index.size(axis);
  const Tensor labels = cast(target.index, position_dtype(target.part, target.part.size(axis)));
  const Tensor order = argsort(labels, axis), place = gather(labels, axis, order);
  Tensor joined = gather(source, axis, order);
  for (int64_t step = 1; step < length; step *= 2) {
    const Tensor same = eq(slice(place, axis, step, length), slice(place, axis, 0, length - step));
    const Tensor later = slice(joined, axis, step, length), both = join(later, slice(joined, axis, 0, length - step));
    joined = cat({slice(joined, axis, 0, step), where(same, both, later)}, axis);
  }
  const Writers last = last_writers(cast(place, DType::i64), axis, target.part.size(axis));
  return {last.written, gather(joined, axis, last.number)};
}

Tensor joined(const ScatterTarget& target, const Tensor& source, Join join, bool include_self) {
  const Groups groups = groups_of(target, source, join);
  return where(groups.written, include_self ? join(target.part, groups.joined) : groups.joined, target.part);
}

// --- Extremes. All elements equal to the result share its gradient equally.

struct Extremes {
  Tensor index;
  int axis;
  bool include_self;
};
struct Shares {
  Tensor part, source;  // of the gradient; constants
};

Shares shares_of(const Tensor& part, const Tensor& source, const Tensor& best, const Extremes& how) {
  const NoGrad constant;
  Tensor own = cast(eq(part, best), part.dtype());
  const Tensor others = cast(eq(source, gather(best, how.axis, how.index)), part.dtype());
  const Tensor all = scatter_add(own, how.axis, how.index, others);
  if (!how.include_self) own = where(gt(times_named(part, how.axis, how.index), 0), 0, own);
  return {div(own, all), div(others, gather(all, how.axis, how.index))};
}

constexpr auto kOfPart = gradient<kInput0, kInput1, kOutput, kPayload>(
    [](const Tensor& grad, const Tensor& part, const Tensor& source, const Tensor& best, const Extremes& how) {
      return mul(grad, shares_of(part, source, best, how).part);
    });
constexpr auto kOfSource = gradient<kInput0, kInput1, kOutput, kPayload>(
    [](const Tensor& grad, const Tensor& part, const Tensor& source, const Tensor& best, const Extremes& how) {
      return mul(gather(grad, how.axis, how.index), shares_of(part, source, best, how).source);
    });

Tensor extreme(const ScatterTarget& target, const Tensor& source, Join join, bool include_self) {
  static constexpr auto kRule = rule("scatter_reduce", kOfPart, kOfSource);
  Tensor best;
  {
    const NoGrad unrecorded;
    best = joined(target, source, join, include_self);
  }
  return differentiable(kRule, {target.index, target.axis, include_self}, std::move(best), target.part, source);
}

Tensor reduced(const ScatterTarget& target, const Tensor& source, ScatterReduction reduce, bool include_self) {
  switch (reduce) {
    case ScatterReduction::prod: return joined(target, source, mul, include_self);
    case ScatterReduction::amax: return extreme(target, source, maximum, include_self);
    case ScatterReduction::amin: return extreme(target, source, minimum, include_self);
    default: return summed(target, source, reduce == ScatterReduction::mean, include_self);
  }
}

void require_numbers(const Tensor& x, const Tensor& index, const Tensor& src) {
  for (const Tensor* each : {&x, &index, &src}) require_defined(*each, "scatter_reduce");
  if (x.dtype() == DType::boolean) refuse("scatter_reduce", "x is bool, expected a dtype of numbers: cast it");
  require_together("scatter_reduce", x, src);
}
}  // namespace

Tensor scatter_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& src, ScatterReduction reduce,
                      bool include_self) {
  require_numbers(x, index, src);
  const Tensor wide = at_least_f32(x), from = at_least_f32(src);
  if (wide.dtype() != x.dtype()) return cast(scatter_reduce(wide, axis, index, from, reduce, include_self), x.dtype());
  if (!x.rank()) return reshape(scatter_reduce(as_line(x), axis, as_line(index), as_line(src), reduce, include_self), {});
  const ScatterTarget target = scatter_target("scatter_reduce", x, axis, index);
  const Tensor source = scatter_source("scatter_reduce", x, index, src);
  if (!index.count()) return clone(x);
  return with_target(x, target, reduced(target, source, reduce, include_self));
}

Tensor index_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& source, ScatterReduction reduce,
                    bool include_self) {
  for (const Tensor* each : {&x, &index, &source}) require_defined(*each, "index_reduce");
  const int at = normal_axis(axis, std::max(x.rank(), 1), "index_reduce");
  Shape shape = as_line(x).shape(), along(std::vector<int64_t>(static_cast<size_t>(shape.rank()), 1));
  shape[static_cast<size_t>(at)] = along[static_cast<size_t>(at)] = index.count();
  if (index.rank() > 1 || as_line(source).shape() != shape)
    refuse("index_reduce", "index has shape " + index.shape().text() + " and source " + source.shape().text() +
                               ": expected one axis, and " + shape.text());
  const Tensor places = expand(reshape(index, along), shape);
  return reshape(scatter_reduce(as_line(x), at, places, as_line(source), reduce, include_self), x.shape());
}

}  // namespace plugrad
