#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/normalization.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <numeric>

namespace plugrad::io::onnx {
namespace {

Shape shape_from(const Shape& shape, int first) {
  return Shape(std::span(shape.begin() + first, static_cast<size_t>(shape.rank() - first)));
}

Shape axes_from(int first, int end) {
  std::vector<int64_t> all(static_cast<size_t>(end - first));
  std::iota(all.begin(), all.end(), first);
  return Shape(all);
}

Values layer_norms(Call& c) {
  const Tensor& x = c.tensor(0);
  const int first = Call::axis(c.integer("axis", -1), x.rank());
  const Shape shape = shape_from(x.shape(), first);
  const double eps = c.real("epsilon", 1e-5);
  const bool plain = c.shape(1) == shape && (!c.has(2) || c.shape(2) == shape);
  if (!c.wants(1) && !c.wants(2) && plain) return {c.like(layer_norm(x, shape, c.tensor(1), c.optional(2), eps))};
  const Shape axes = axes_from(first, x.rank());
  const Tensor y = x.dtype() == DType::f64 ? x : cast(x, DType::f32), center = mean(y, axes, true),
               difference = sub(y, center);
  const Tensor inverse = reciprocal(sqrt(add(mean(mul(difference, difference), axes, true), eps)));
  Tensor result = mul(cast(mul(difference, inverse), x.dtype()), c.tensor(1));
  if (c.has(2)) result = add(result, c.tensor(2));
  return {c.like(result), cast(center, DType::f32), cast(inverse, DType::f32)};
}

Value rms_norms(Call& c) {
  const Tensor& x = c.tensor(0);
  const Shape shape = shape_from(x.shape(), Call::axis(c.integer("axis", -1), x.rank()));
  const double eps = c.real("epsilon", 1e-5);
  if (c.shape(1) == shape) return c.like(rms_norm(x, shape, c.tensor(1), eps));
  return c.like(mul(rms_norm(x, shape, {}, eps), c.tensor(1)));
}

Values batch_norms(Call& c) {
  const Tensor& x = c.tensor(0);
  const auto of_x = [&](size_t i) { return c.tensor(i).dtype() == x.dtype() ? c.tensor(i) : cast(c.tensor(i), x.dtype()); };
  if (!c.integer("spatial", 1)) throw Error(Code::unsupported, "statistics of each element, spatial = 0, are not supported");
  const double eps = c.real("epsilon", 1e-5), momentum = c.real("momentum", 0.9);
  const bool training = c.integer("training_mode", 0) || (c.opset() < 14 && c.wants(1));
  if (!training) return {c.like(batch_norm(x, of_x(3), of_x(4), of_x(1), of_x(2), false, 0.1, eps))};
  std::vector<int64_t> axes{0};
  for (int d = 2; d < x.rank(); ++d) axes.push_back(d);
  const Tensor center = mean(x, axes), variance = var(x, axes, false, 0);
  const auto moved = [&](size_t i, const Tensor& now) {
    return c.like(add(mul(c.tensor(i), momentum), mul(now, 1 - momentum)), i);
  };
  return {c.like(batch_norm(x, center, variance, of_x(1), of_x(2), false, 0, eps)), moved(3, center), moved(4, variance)};
}

Value instance_norms(Call& c) {
  const Tensor& x = c.tensor(0);
  const double eps = c.real("epsilon", 1e-5);
  if (x.rank() > 2 && x.count() != x.size(0) * x.size(1))
    return c.like(instance_norm(x, {}, {}, c.tensor(1), c.tensor(2), true, 0.1, eps));
  const Shape shape = shape_along(x.rank(), 1, c.tensor(2).count());  // one element for each channel is its own mean
  return c.like(contiguous(expand(reshape(c.tensor(2), shape), x.shape())));
}

// Before version 21, scale and bias belong to the groups.
Value group_norms(Call& c) {
  const int64_t groups = c.positive_attribute("num_groups", 1), channels = c.tensor(0).size(1);
  const auto of_channels = [&](size_t i) {
    if (c.tensor(i).count() == channels) return c.tensor(i);
    return reshape(expand(reshape(c.tensor(i), {groups, 1}), {groups, channels / groups}), {channels});
  };
  return c.like(group_norm(c.tensor(0), groups, of_channels(1), of_channels(2), c.real("epsilon", 1e-5)));
}

Value lp_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = Call::axis(c.integer("axis", -1), x.rank());
  const Tensor size = c.integer("p", 2) == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(mul(x, x), {axis}, true));
  return c.like(where(eq(size, 0), zeros_like(x), div(x, size)));
}

Value mean_variance(Call& c) {
  std::vector<int64_t> axes = c.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  std::erase_if(axes, [&](int64_t each) { return each >= c.rank(0); });
  const Tensor difference = sub(c.tensor(0), mean(c.tensor(0), axes, true));
  return c.like(div(difference, add(sqrt(mean(mul(difference, difference), axes, true)), 1e-9)));
}

Value local_response(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t size = c.positive_attribute("size", 1), before = (size - 1) / 2;
  if (x.rank() < 2) throw Error(Code::invalid, "x has no channels");
  std::vector<int64_t> pads(static_cast<size_t>(2 * (x.rank() - 2)), 0);
  pads.push_back(before);
  pads.push_back(size - 1 - before);
  const Tensor squares = pad(mul(x, x), pads);
  Tensor total;
  for (int64_t k = 0; k < size; ++k) {
    const Tensor part = slice(squares, 1, k, k + x.size(1));
    total = total.defined() ? add(total, part) : part;
  }
  const double scale = c.real("alpha", 1e-4) / static_cast<double>(size);
  return c.like(div(x, pow(add(mul(total, scale), c.real("bias", 1)), c.real("beta", 0.75))));
}

Tensor folding_scale(Call& c, size_t scale, size_t variance) {
  return div(c.tensor(scale), sqrt(add(c.tensor(variance), c.real("epsilon", 1e-5))));
}

Value folded_weight(Call& c) {
  const Shape shape = shape_along(c.rank(0), 0, c.tensor(0).size(0));
  return c.like(mul(c.tensor(0), reshape(folding_scale(c, 1, 2), shape)));
}

Value folded_bias(Call& c) {
  const Tensor center = c.has(4) ? sub(c.tensor(2), c.tensor(4)) : c.tensor(2);
  return c.like(sub(c.tensor(1), mul(center, folding_scale(c, 0, 3))));
}

constexpr Operator kNormalizations[] = {
    {"LayerNormalization", layer_norms},
    {"RMSNormalization", rms_norms},
    {"SimplifiedLayerNormalization", rms_norms},
    {"BatchNormalization", batch_norms},
    {"InstanceNormalization", instance_norms},
    {"GroupNormalization", group_norms},
    {"LpNormalization", lp_normalization},
    {"MeanVarianceNormalization", mean_variance},
    {"LRN", local_response},
    {"plugrad.FoldedWeight", folded_weight},
    {"plugrad.FoldedBias", folded_bias},
};
}  // namespace

std::span<const Operator> normalization_operators() { return kNormalizations; }

}  // namespace plugrad::io::onnx
