#include <plugrad/ops/sorting.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/bitonic.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <limits>

namespace plugrad {
namespace {
// A line of 1 element has the order of a number.
int line_axis(const char* name, const Tensor& x, int axis) {
  require_defined(x, name);
  return normal_axis(axis, std::max(1, x.rank()), name);
}
Tensor as_lines(const Tensor& x) { return x.rank() ? x : reshape(x, {1}); }

void require_elements(const char* name, const Tensor& x, int axis) {
  if (!x.size(axis))
    refuse(name, "axis " + std::to_string(axis) + " of " + x.shape().text() + " has no elements: give one or more");
}

// x's elements at the positions along the axis, and the positions. They have no such axis unless keepdim is set and `given`,
// the caller's x, has axes.
ValuesIndices chosen(const Tensor& x, int axis, const Tensor& indices, const Tensor& given, bool keepdim) {
  const ValuesIndices kept{gather(x, axis, indices), indices};
  if (given.rank() && keepdim) return kept;
  return {squeeze(kept.values, {axis}), squeeze(kept.indices, {axis})};
}

// The first `count` of the sorted positions, or an undefined tensor if the device has no kernel for them.
Tensor native_first(const Tensor& x, int axis, bool descending, int64_t count) {
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = count;
  const Tensor out = empty(Op::TOPK, device_of(x), shape, PLUGRAD_I64);
  const plugrad_sort attributes{sizeof attributes, axis, descending};
  return !out.count() || try_run(Op::TOPK, {out}, {x}, attributes) ? out : Tensor();
}

// The part of the sorted positions, as a copy. A small part is found without sorting the rest.
Tensor part_of_order(const Tensor& x, int axis, bool descending, int64_t start, int64_t end) {
  constexpr int64_t kMuchSmaller = 4;
  if (kMuchSmaller * end <= x.size(axis)) {
    const Tensor first = native_first(x, axis, descending, end);
    if (first.defined()) return start ? contiguous(slice(first, axis, start, end)) : first;
    count_decomposition(x);
  }
  return contiguous(slice(argsort(x, axis, descending), axis, start, end));
}
}  // namespace

Tensor argsort(const Tensor& x, int axis, bool descending, bool) {
  require_real("argsort", x);
  const int at = line_axis("argsort", x, axis);
  if (!x.rank()) return zeros({}, DType::i64, x.device());
  Tensor out = empty_like(Op::ARGSORT, device_of(x), view_of(x), PLUGRAD_I64);
  const plugrad_sort attributes{sizeof attributes, at, descending};
  if (x.count() && !try_run(Op::ARGSORT, {out}, {x}, attributes)) {
    count_decomposition(x);
    const NoGrad unrecorded;
    out = bitonic_argsort(x.detach(), at, descending);
  }
  return out;
}

ValuesIndices sort(const Tensor& x, int axis, bool descending, bool) {
  const int at = line_axis("sort", x, axis);
  if (!x.rank()) return {clone(x), zeros({}, DType::i64, x.device())};
  const Tensor order = argsort(x, at, descending);
  return {gather(x, at, order), order};
}

Tensor msort(const Tensor& x) { return sort(x, 0).values; }

ValuesIndices topk(const Tensor& x, int64_t k, int axis, bool largest, bool) {
  const int at = line_axis("topk", x, axis);
  const Tensor line = as_lines(x);
  if (k < 0 || k > line.size(at))
    refuse("topk", "k is " + std::to_string(k) + ", but axis " + std::to_string(at) + " of " + x.shape().text() + " has " +
                       std::to_string(line.size(at)) + " elements: give a k from 0 to that");
  const Tensor order = part_of_order(line, at, largest, 0, k);
  const ValuesIndices best{gather(line, at, order), order};
  if (x.rank() || !k) return best;
  return {reshape(best.values, {}), reshape(best.indices, {})};
}

ValuesIndices kthvalue(const Tensor& x, int64_t k, int axis, bool keepdim) {
  const int at = line_axis("kthvalue", x, axis);
  const Tensor line = as_lines(x);
  if (k < 1 || k > line.size(at))
    refuse("kthvalue", "k is " + std::to_string(k) + ", but axis " + std::to_string(at) + " of " + x.shape().text() +
                           " has " + std::to_string(line.size(at)) + " elements: give a k from 1 to that");
  return chosen(line, at, part_of_order(line, at, false, k - 1, k), x, keepdim);
}

// --- The largest and the smallest.

ValuesIndices max_with_indices(const Tensor& x, int axis, bool keepdim) {
  const int at = line_axis("max", x, axis);
  const Tensor line = as_lines(x);
  require_elements("max", line, at);
  return chosen(line, at, argmax(line, {at}, true), x, keepdim);
}

ValuesIndices min_with_indices(const Tensor& x, int axis, bool keepdim) {
  const int at = line_axis("min", x, axis);
  const Tensor line = as_lines(x);
  require_elements("min", line, at);
  const Tensor numbers = line.dtype() == DType::boolean ? cast(line, DType::i64) : line;
  return chosen(line, at, argmin(numbers, {at}, true), x, keepdim);
}

// --- Medians and modes.

namespace {
// The number of NaNs in each line.
Tensor count_of_nan(const Tensor& x, int axis) { return sum(isnan(x), {axis}, true); }

// The position of the median along the axis. The axis has elements.
Tensor median_index(const Tensor& x, int axis, bool ignores_nan) {
  const NoGrad unrecorded;
  const int64_t n = x.size(axis);
  if (!is_floating(x.dtype())) return part_of_order(x, axis, false, (n - 1) / 2, (n - 1) / 2 + 1);
  const Tensor nans = count_of_nan(x, axis), numbers = sub(n, nans);  // the NaNs come last
  const Tensor middle =
      ignores_nan ? maximum(floor_divide(sub(numbers, 1), 2), 0) : where(gt(nans, 0), numbers, (n - 1) / 2);
  return gather(argsort(x, axis), axis, middle);
}

ValuesIndices median_along(const char* name, const Tensor& x, int axis, bool keepdim, bool ignores_nan) {
  const int at = line_axis(name, x, axis);
  const Tensor line = as_lines(x);
  require_elements(name, line, at);
  return chosen(line, at, median_index(line, at, ignores_nan), x, keepdim);
}

Tensor median_of_all(const char* name, const Tensor& x, bool ignores_nan) {
  static constexpr auto kRule =
      rule("median", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& x, const Tensor& median) {
             Tensor share;
             {
               const NoGrad constant;
               const Tensor ties = cast(logical_or(eq(x, median), logical_and(isnan(x), isnan(median))), x.dtype());
               share = div(ties, sum(ties));
             }
             return mul(grad, share);
           }));
  require_defined(x, name);
  if (!x.count()) {
    if (!is_floating(x.dtype())) refuse(name, "x has shape " + x.shape().text() + ": give one element or more");
    return full({}, std::numeric_limits<double>::quiet_NaN(), x.dtype(), x.device());
  }
  Tensor middle;
  {
    const NoGrad unrecorded;
    middle = median_along(name, reshape(ungraphed(x), {-1}), 0, false, ignores_nan).values;
  }
  return differentiable(kRule, std::move(middle), x);
}
}  // namespace

Tensor median(const Tensor& x) { return median_of_all("median", x, false); }
Tensor nanmedian(const Tensor& x) { return median_of_all("nanmedian", x, true); }
ValuesIndices median(const Tensor& x, int axis, bool keepdim) { return median_along("median", x, axis, keepdim, false); }
ValuesIndices nanmedian(const Tensor& x, int axis, bool keepdim) {
  return median_along("nanmedian", x, axis, keepdim, true);
}

ValuesIndices mode(const Tensor& x, int axis, bool keepdim) {
  const int at = line_axis("mode", x, axis);
  const Tensor line = as_lines(x);
  require_elements("mode", line, at);
  Tensor index;
  {
    const NoGrad unrecorded;
    const ValuesIndices order = sort(ungraphed(line), at);
    const int64_t n = line.size(at);
    Shape along;
    for (int i = 0; i < line.rank(); ++i) along.push_back(i == at ? n : 1);
    const Tensor place = reshape(arange(0, n, 1, DType::i64, x.device()), along);
    const Tensor begins = ne(slice(order.values, at, 1, n), slice(order.values, at, 0, n - 1));
    const Tensor starts = where(begins, slice(place, at, 1, n), 0);
    const Tensor first = cat({zeros_like(slice(order.indices, at, 0, 1)), starts}, at);
    const Tensor length = sub(place, cummax(first, at).values);  // of the run so far; the longest ends at its last element
    index = gather(order.indices, at, argmax(length, {at}, true));
  }
  return chosen(line, at, index, x, keepdim);
}

}  // namespace plugrad
