#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>

#include <limits>
#include <numeric>

namespace plugrad::io::onnx {
namespace {

using Reduce = Tensor (*)(const Tensor& x, const Shape& axes, bool keepdims);

// `alone` is applied to the elements where nothing is reduced.
template <Reduce F, Tensor (*alone)(const Tensor&)> Value reduction(Call& c) {
  const Tensor& x = c.tensor(0);
  std::vector<int64_t> axes = c.has(1) ? c.integers(size_t{1}) : c.integers("axes");
  if (axes.empty()) {
    if (c.integer("noop_with_empty_axes", 0)) return c.like(alone(x));
    axes.resize(static_cast<size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (!x.rank()) return c.like(alone(x));
  for (int64_t& each : axes) each = Call::axis(each, x.rank());
  return c.like(F(x, Shape(axes), c.integer("keepdims", 1) != 0));
}

Tensor same(const Tensor& x) { return x; }
Tensor squared(const Tensor& x) { return mul(x, x); }
Tensor size_of(const Tensor& x) { return abs(x); }
Tensor logarithm(const Tensor& x) { return log(x); }

Tensor wide(const Tensor& x) { return x.dtype() == DType::f16 || x.dtype() == DType::bf16 ? cast(x, DType::f32) : x; }
Tensor sum_over(const Tensor& x, const Shape& axes, bool keep) { return sum(x, axes, keep); }
Tensor mean_over(const Tensor& x, const Shape& axes, bool keep) { return mean(x, axes, keep); }
Tensor product_over(const Tensor& x, const Shape& axes, bool keep) { return prod(x, axes, keep); }
Tensor squares_over(const Tensor& x, const Shape& axes, bool keep) { return sum(mul(x, x), axes, keep); }
Tensor sizes_over(const Tensor& x, const Shape& axes, bool keep) { return sum(abs(x), axes, keep); }
Tensor length_over(const Tensor& x, const Shape& axes, bool keep) {
  const Tensor y = is_floating(x.dtype()) ? x : cast(x, DType::f64);
  return sqrt(sum(wide(mul(y, y)), axes, keep));
}
Tensor log_sum_over(const Tensor& x, const Shape& axes, bool keep) { return log(sum(x, axes, keep)); }

bool is_empty_over(const Tensor& x, const Shape& axes) {
  for (const int64_t each : axes)
    if (!x.size(static_cast<int>(each))) return true;
  return false;
}

Tensor log_sum_exp_over(const Tensor& x, const Shape& axes, bool keep) {
  const Tensor y = is_floating(x.dtype()) ? x : cast(x, DType::f64);
  return is_empty_over(x, axes) ? log(sum(exp(y), axes, keep)) : logsumexp(y, axes, keep);
}

// The smallest or the largest value of the dtype for an empty reduction.
template <bool kMax> Tensor extremum_over(const Tensor& x, const Shape& axes, bool keep) {
  if (x.dtype() == DType::boolean) return kMax ? any(x, axes, keep) : all(x, axes, keep);
  if (!is_empty_over(x, axes)) return kMax ? amax(x, axes, keep) : amin(x, axes, keep);
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor none = sum(x, axes, keep);
  if (is_floating(x.dtype())) return full_like(none, kMax ? -infinity : infinity);
  using Limits = std::numeric_limits<int64_t>;
  const Range range = range_of(element_type_of(x.dtype())).value_or(Range{Limits::min(), Limits::max()});
  return cast(full_like(cast(none, DType::i64), kMax ? range.low : range.high), x.dtype());
}

template <bool kMax> Value position(Call& c) {
  const Tensor& x = c.tensor(0);
  if (!x.rank()) return zeros({}, DType::i64, c.device());
  const int axis = Call::axis(c.integer("axis", 0), x.rank());
  const bool keep = c.integer("keepdims", 1), last = c.integer("select_last_index", 0);
  const Tensor in = last ? flip(x, {axis}) : x;
  const Tensor index = kMax ? argmax(in, {axis}, keep) : argmin(in, {axis}, keep);
  return last ? sub(Number(x.size(axis) - 1), index) : index;
}

// exclusive: element i is of the elements before i.
template <Tensor (*scan)(const Tensor&, int)> Value cumulative(Call& c, double neutral) {
  const Tensor& x = c.tensor(0);
  const int axis = Call::axis(c.integer(1), x.rank());
  const bool reverse = c.integer("reverse", 0);
  Tensor in = reverse ? flip(x, {axis}) : x;
  if (c.integer("exclusive", 0) && x.size(axis))
    in = cat({full_like(slice(in, axis, 0, 1), neutral), slice(in, axis, 0, x.size(axis) - 1)}, axis);
  const Tensor result = scan(in, axis);
  return c.like(reverse ? flip(result, {axis}) : result);
}
Value cumulative_sum(Call& c) { return cumulative<cumsum>(c, 0); }
Value cumulative_product(Call& c) { return cumulative<cumprod>(c, 1); }

constexpr Operator kReductions[] = {
    {"ReduceSum", reduction<sum_over, same>},
    {"ReduceMean", reduction<mean_over, same>},
    {"ReduceMax", reduction<extremum_over<true>, same>},
    {"ReduceMin", reduction<extremum_over<false>, same>},
    {"ReduceProd", reduction<product_over, same>},
    {"ReduceSumSquare", reduction<squares_over, squared>},
    {"ReduceL1", reduction<sizes_over, size_of>},
    {"ReduceL2", reduction<length_over, size_of>},
    {"ReduceLogSum", reduction<log_sum_over, logarithm>},
    {"ReduceLogSumExp", reduction<log_sum_exp_over, same>},
    {"ArgMax", position<true>},
    {"ArgMin", position<false>},
    {"CumSum", cumulative_sum},
    {"CumProd", cumulative_product},
};
}  // namespace

std::span<const Operator> reduction_operators() { return kReductions; }

}  // namespace plugrad::io::onnx
