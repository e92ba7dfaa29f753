#include <plugrad/ops/sets.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/extent.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/sorting.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace plugrad {

// --- Distinct elements.

namespace {
// The items of x as rows (n, m): elements, or slices of an axis.
struct Items {
  Tensor rows;
  int axis = -1;  // -1: elements
  Shape rest;     // of a slice

  Items(const char* name, const Tensor& x, std::optional<int64_t> along) {
    require_defined(x, name);
    if (!along) {
      rows = reshape(x, {x.count(), 1});
      return;
    }
    axis = normal_axis(*along, x.rank(), name);
    const Tensor slices = movedim(x, {axis}, {0});
    for (int i = 1; i < x.rank(); ++i) rest.push_back(slices.size(i));
    if (!x.count() && x.size(axis))
      refuse(name, "x has shape " + x.shape().text() + ": slices along axis " + std::to_string(axis) + " have no elements");
    rows = reshape(slices, {x.size(axis), rest.count()});
  }

  int64_t count() const { return rows.size(0); }
  Tensor at(const Tensor& places) const {
    return gather(rows, 0, expand(unsqueeze(places, 1), {places.size(0), rows.size(1)}));
  }
  // Rows in the form of the result.
  Tensor result(const Tensor& chosen) const {
    if (axis < 0) return reshape(chosen, {-1});
    Shape shape = {chosen.size(0)};
    for (const int64_t extent : rest) shape.push_back(extent);
    return movedim(reshape(chosen, shape), {0}, {axis});
  }
};

// The places of the rows in lexicographic order: sorts by the last column first, and each sort keeps the order before it.
Tensor lexicographic(const Tensor& rows) {
  Tensor order = argsort(select(rows, 1, -1));
  for (int64_t column = rows.size(1) - 1; column-- > 0;)
    order = gather(order, 0, argsort(gather(select(rows, 1, column), 0, order)));
  return order;
}

// Joins equal neighbours of the items at the places in `order`.
Unique joined(const Items& items, const Tensor& order, const Shape& inverse_shape, bool wants_inverse, bool wants_counts) {
  const int64_t n = items.count();
  Tensor group, firsts, counts, inverse;
  {
    const NoGrad unrecorded;
    const Tensor rows = Items(items).at(order).detach();
    const Tensor begins = any(ne(slice(rows, 0, 1, n), slice(rows, 0, 0, n - 1)), {1});
    group = cumsum(cat({zeros({1}, DType::i64, order.device()), cast(begins, DType::i64)}), 0);
    const int64_t groups = select(group, 0, -1).item<int64_t>() + 1;
    const Tensor none = zeros({groups}, DType::i64, order.device()), ones = ones_like(group);
    const Tensor sizes = scatter_add(none, 0, group, ones);
    firsts = sub(cumsum(sizes, 0), sizes);
    if (wants_counts) counts = sizes;
    if (wants_inverse) inverse = reshape(scatter_add(zeros_like(group), 0, order, group), inverse_shape);
  }
  return {items.result(items.at(gather(order, 0, firsts))), inverse, counts};
}

Unique none_of(const Items& items, const Tensor& x, const Shape& inverse_shape, bool wants_inverse, bool wants_counts) {
  Unique out{items.axis < 0 ? reshape(x, {0}) : x, {}, {}};
  if (wants_inverse) out.inverse = zeros(inverse_shape, DType::i64, x.device());
  if (wants_counts) out.counts = zeros({0}, DType::i64, x.device());
  return out;
}

Unique distinct(const char* name, const Tensor& x, bool sorts, bool wants_inverse, bool wants_counts,
                std::optional<int64_t> axis) {
  const Items items(name, x, axis);
  const Shape inverse_shape = axis ? Shape{items.count()} : x.shape();
  if (!items.count()) return none_of(items, x, inverse_shape, wants_inverse, wants_counts);
  const Tensor order = sorts ? lexicographic(items.rows.detach()) : arange(0, items.count(), 1, DType::i64, x.device());
  return joined(items, order, inverse_shape, wants_inverse, wants_counts);
}
}  // namespace

Unique unique(const Tensor& x, bool, bool return_inverse, bool return_counts, std::optional<int64_t> axis) {
  return distinct("unique", x, true, return_inverse, return_counts, axis);
}
Unique unique_consecutive(const Tensor& x, bool return_inverse, bool return_counts, std::optional<int64_t> axis) {
  return distinct("unique_consecutive", x, false, return_inverse, return_counts, axis);
}

// --- Places in sorted sequences.

namespace {
// Of sequences (lines, n) and values (lines, m), in one dtype: how many elements of the line come before each value, or are
// equal to it if `equal` is true.
Tensor count_before(const Tensor& sequences, const Tensor& values, bool equal) {
  const int64_t n = sequences.size(1);
  Tensor count = zeros(values.shape(), DType::i64, values.device());
  const Tensor nan = isnan(values);
  for (int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n))); step; step /= 2) {
    const Tensor further = add(count, step), last = gather(sequences, 1, sub(minimum(further, n), 1));
    const Tensor before =
        equal ? logical_or(le(last, values), nan) : logical_or(lt(last, values), logical_and(nan, logical_not(isnan(last))));
    count = where(logical_and(le(further, n), before), further, count);
  }
  return count;
}

bool fits(const Tensor& sequences, const Tensor& values) {
  if (sequences.rank() == 1) return true;
  bool same = sequences.rank() == values.rank() && sequences.rank() > 0;
  for (int i = 0; same && i + 1 < values.rank(); ++i) same = values.size(i) == sequences.size(i);
  return same;
}

Tensor places_in(const char* name, const Tensor& sequences, const Tensor& values, bool equal) {
  require_defined(sequences, name);
  require_defined(values, name);
  if (sequences.device() != values.device()) throw_not_together(name, sequences, values);
  if (!fits(sequences, values))
    refuse(name, "the sequences have shape " + sequences.shape().text() + " and the values " + values.shape().text() +
                     ": give one axis of sequence, or equal shapes but for the last axis");
  const NoGrad unrecorded;
  const DType dtype = promote_types(sequences.dtype(), values.dtype());
  const DType compared = dtype == DType::boolean ? DType::i64 : accumulator_of(dtype);
  const int64_t n = sequences.size(-1), lines = sequences.rank() == 1 ? 1 : sequences.count() / std::max<int64_t>(n, 1);
  if (!n || !values.count()) return zeros(values.shape(), DType::i64, values.device());
  const Tensor s = reshape(cast(sequences.detach(), compared), {lines, n});
  const Tensor v = reshape(cast(values.detach(), compared), {lines, values.count() / lines});
  return reshape(count_before(s, v, equal), values.shape());
}

Tensor of_number(Number value, const Tensor& beside) {
  return full({}, value, promote_number(beside.dtype(), value.floating()), beside.device());
}
}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool out_int32, bool right, Side side) {
  const Tensor places = places_in("searchsorted", sorted_sequence, values, right || side == Side::right);
  return out_int32 ? cast(places, DType::i32) : places;
}
Tensor searchsorted(const Tensor& sorted_sequence, Number values, bool out_int32, bool right, Side side) {
  require_defined(sorted_sequence, "searchsorted");
  return searchsorted(sorted_sequence, of_number(values, sorted_sequence), out_int32, right, side);
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool out_int32, bool right) {
  require_defined(boundaries, "bucketize");
  if (boundaries.rank() != 1) refuse("bucketize", "boundaries have shape " + boundaries.shape().text() + ": give one axis");
  const Tensor places = places_in("bucketize", boundaries, x, right);
  return out_int32 ? cast(places, DType::i32) : places;
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  require_defined(elements, "isin");
  require_defined(test_elements, "isin");
  if (elements.device() != test_elements.device()) throw_not_together("isin", elements, test_elements);
  const NoGrad unrecorded;
  if (!test_elements.count() || !elements.count()) return full(elements.shape(), invert, DType::boolean, elements.device());
  const DType dtype = promote_types(elements.dtype(), test_elements.dtype());
  const Tensor x = cast(elements.detach(), dtype), among = sort(reshape(cast(test_elements.detach(), dtype), {-1})).values;
  const Tensor place = minimum(reshape(searchsorted(among, x), {-1}), among.size(0) - 1);
  const Tensor nearest = reshape(gather(among, 0, place), x.shape());
  return invert ? ne(x, nearest) : eq(x, nearest);
}
Tensor isin(const Tensor& elements, Number test_elements, bool assume_unique, bool invert) {
  require_defined(elements, "isin");
  return isin(elements, of_number(test_elements, elements), assume_unique, invert);
}

// --- Counts.

namespace {
struct Ends {
  double low, high;
};

// beside: how far the ends are from equal elements.
Ends ends_of(const char* name, const Tensor& x, double low, double high, double beside) {
  if (low == 0 && high == 0 && x.count()) {
    low = min(x).item<double>();
    high = max(x).item<double>();
  }
  if (!std::isfinite(low) || !std::isfinite(high))
    refuse(name, "the ends are " + number_text(low) + " and " + number_text(high) + ": give finite ones");
  if (high < low) refuse(name, "max is " + number_text(high) + ", below min, " + number_text(low) + ": exchange them");
  return low == high ? Ends{low - beside, high + beside} : Ends{low, high};
}
}  // namespace

namespace {
// The ends of the parts, of rank 0. Where the elements decide, a compiled step finds them in each call.
struct EndTensors {
  Tensor low, high;
};
EndTensors end_tensors(const Tensor& x, double low, double high) {
  if (!observe::hides_elements() || low != 0 || high != 0 || !x.count()) {
    const Ends ends = ends_of("histc", x, low, high, 1);
    return {full({}, ends.low, x.dtype(), x.device()), full({}, ends.high, x.dtype(), x.device())};
  }
  const Tensor least = min(x), most = max(x), equal = eq(least, most);
  return {where(equal, sub(least, 1), least), where(equal, add(most, 1), most)};
}
}  // namespace

Tensor histc(const Tensor& x, int64_t bins, double min, double max) {
  require_floating("histc", x);
  if (bins < 1) refuse("histc", "bins is " + std::to_string(bins) + ": give 1 or more");
  const NoGrad unrecorded;
  const Tensor elements = reshape(at_least_f32(x.detach()), {-1});
  const auto [low, high] = end_tensors(elements, min, max);
  const Tensor inside = logical_and(ge(elements, low), le(elements, high));
  const Tensor part = div(mul(sub(elements, low), static_cast<double>(bins)), sub(high, low));
  const Tensor index = where(inside, minimum(cast(part, DType::i64), bins - 1), 0);
  return cast(scatter_add(zeros({bins}, DType::i64, x.device()), 0, index, cast(inside, DType::i64)), x.dtype());
}

Histogram histogram(const Tensor& x, const Tensor& bins, const Tensor& weight, bool density) {
  require_floating("histogram", x);
  require_defined(bins, "histogram");
  if (bins.rank() != 1 || bins.count() < 2 || (weight.defined() && weight.shape() != x.shape()))
    refuse("histogram", "x has shape " + x.shape().text() + ", bins " + bins.shape().text() + " and weight " +
                            (weight.defined() ? weight.shape().text() : std::string("none")) +
                            ": give two edges or more, and a weight for each element");
  const NoGrad unrecorded;
  const int64_t count = bins.count() - 1;
  const Tensor elements = reshape(x.detach(), {-1}), edges = cast(bins.detach(), x.dtype());
  const Tensor last = select(edges, 0, count);
  const Tensor inside = logical_and(ge(elements, select(edges, 0, 0)), le(elements, last));
  const Tensor place = sub(bucketize(elements, edges, false, true), cast(eq(elements, last), DType::i64));
  const Tensor index = where(inside, clamp(place, 1, count), 1);
  const Tensor terms = weight.defined() ? reshape(weight.detach(), {-1}) : ones_like(elements);
  Tensor hist = scatter_add(zeros({count}, x.dtype(), x.device()), 0, sub(index, 1), where(inside, terms, 0));
  if (density) hist = div(div(hist, sum(hist)), sub(slice(edges, 0, 1, count + 1), slice(edges, 0, 0, count)));
  return {hist, edges};
}

Histogram histogram(const Tensor& x, int64_t bins, const std::vector<double>& range, const Tensor& weight, bool density) {
  require_floating("histogram", x);
  if (bins < 1) refuse("histogram", "bins is " + std::to_string(bins) + ": give 1 or more");
  if (range.size() != 2 && !range.empty())
    refuse("histogram", "range has " + std::to_string(range.size()) + " numbers: give two");
  const Ends ends = x.count() || !range.empty()
                        ? ends_of("histogram", x.detach(), range.empty() ? 0 : range[0], range.empty() ? 0 : range[1], 0.5)
                        : Ends{0, 1};
  return histogram(x, linspace(ends.low, ends.high, Extent(bins) + 1, x.dtype(), x.device()), weight, density);
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  require_integer("bincount", x, "x");
  const bool fit = x.rank() == 1 && (!weights.defined() || weights.shape() == x.shape());
  if (!fit || minlength < 0)
    refuse("bincount", "x has shape " + x.shape().text() + ", weights " +
                           (weights.defined() ? weights.shape().text() : std::string("none")) + ", and minlength is " +
                           std::to_string(minlength) + ": give one axis, equal shapes, and a minlength of 0 or more");
  const Tensor index = cast(x, DType::i64);
  int64_t length = minlength;
  if (!minlength) observe::unrepeatable("chooses the length of bincount's result by the elements", "give minlength");
  // With minlength, larger elements are errors of scatter_add where the elements are hidden.
  if (x.count() && !(minlength && observe::hides_elements())) {
    const Tensor lowest = plugrad::min(index);
    if (const int64_t low = lowest.item<int64_t>(); low < 0)
      refuse("bincount", "an element of x is " + std::to_string(low) + ": give none below 0");
    length = std::max<int64_t>(length, Extent(plugrad::max(index).item<int64_t>()) + 1);
  }
  const Tensor terms = !weights.defined()             ? ones_like(index)
                       : is_floating(weights.dtype()) ? weights
                                                      : cast(weights, DType::f64);
  return scatter_add(zeros({length}, terms.dtype(), x.device()), 0, index, terms);
}

}  // namespace plugrad
