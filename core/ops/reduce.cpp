#include <plugrad/ops/reduce.hpp>

#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
// The given axes as a mask, or all of them if none is given.
unsigned axis_mask(const Shape& axes, int rank, const char* what) {
  unsigned mask = axes.empty() ? (1u << rank) - 1 : 0;
  for (int64_t axis : axes) {
    const int at = normal_axis(axis, rank, what);
    if (mask >> at & 1)
      throw Error(Code::invalid,
                  std::string("[") + what + "] axis " + std::to_string(at) + " appears twice in " + axes.text());
    mask |= 1u << at;
  }
  return mask;
}

// A shape with extent 1 at the axes of the mask.
Shape kept_shape(Shape shape, unsigned mask) {
  for (int i = 0; i < shape.rank(); ++i)
    if (mask >> i & 1) shape[static_cast<size_t>(i)] = 1;
  return shape;
}

// Reduces over the axes of the mask and keeps them with extent 1.
Tensor reduce(Op op, const Tensor& x, unsigned mask, uint8_t out_dtype) {
  DeviceState& device = device_of(x);
  const plugrad_view like = dense_view(kept_shape(x.shape(), mask), out_dtype, device.info.alignment);
  if (!view_of(x).count && like.count) {
    if (op == Op::SUM) return filled(device, like, out_dtype, 0);
    throw Error(Code::invalid, "[" + op_label(static_cast<uint32_t>(op)) + "] no elements to reduce: x has shape " +
                                   x.shape().text());
  }
  Tensor out = empty_like(device, like, out_dtype);
  if (like.count) run(op, {out}, {x});
  return out;
}

// x without the axes of the mask, whose extents are 1.
Tensor without_axes(const Tensor& x, unsigned mask) {
  plugrad_view v = view_of(x);
  v.rank = 0;
  for (int i = 0; i < view_of(x).rank; ++i) {
    if (mask >> i & 1) continue;
    v.shape[v.rank] = view_of(x).shape[i];
    v.strides[v.rank++] = view_of(x).strides[i];
  }
  set_layout(v, device_of(x).info.alignment);
  return with_view(x, v);
}

// The reverse: x with all axes of `whole`.
Tensor with_kept_axes(const Tensor& x, const Shape& whole, unsigned mask) { return reshape(x, kept_shape(whole, mask)); }

// The gradient of max and min: all elements that equal the result share it equally.
constexpr auto kExtremum = gradient<kInput0, kOutput, kPayload>(
    [](const Tensor& grad, const Tensor& x, const Tensor& best, unsigned mask) {
      Tensor share;
      {
        const NoGrad constant;
        const Tensor ties = cast(eq(x, with_kept_axes(best, x.shape(), mask)), x.dtype());
        share = div(ties, reduce(Op::SUM, ties, mask, dtype_of(ties)));
      }
      return mul(expand(with_kept_axes(grad, x.shape(), mask), x.shape()), share);
    });
using ExtremumRule = RuleOf<unsigned, kInput0 | kOutput | kPayload>;

Tensor extremum(Op op, const ExtremumRule& rule, const Tensor& x, const Shape& axes, bool keepdim) {
  require(op, x);
  if (is_boolean(dtype_of(x))) return cast(extremum(op, rule, cast(x, DType::i64), axes, keepdim), DType::boolean);
  const unsigned mask = axis_mask(axes, x.rank(), rule.name);
  const Tensor kept = reduce(op, x, mask, dtype_of(x));
  return differentiable(rule, mask, keepdim ? kept : without_axes(kept, mask), x);
}
}  // namespace

Tensor sum(const Tensor& x, const Shape& axes, bool keepdim) {
  static constexpr auto kRule =
      rule("sum", gradient<kShape, kPayload>([](const Tensor& grad, const Shape& shape, unsigned mask) {
             return expand(with_kept_axes(grad, shape, mask), shape);
           }));
  require(Op::SUM, x);
  const unsigned mask = axis_mask(axes, x.rank(), "sum");
  const Tensor kept = reduce(Op::SUM, x, mask, op_info(static_cast<uint32_t>(Op::SUM))->operand_dtype(0, dtype_of(x)));
  return differentiable(kRule, mask, keepdim ? kept : without_axes(kept, mask), x);
}

Tensor mean(const Tensor& x, const Shape& axes, bool keepdim) {
  require_defined(x, "mean");
  // The sum of halves may not be one although their mean is.
  if (const DType wide = accumulator_of(x.dtype()); is_floating(wide) && wide != x.dtype())
    return cast(mean(cast(x, wide), axes, keepdim), x.dtype());
  const unsigned mask = axis_mask(axes, x.rank(), "mean");
  double count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (mask >> i & 1) count *= static_cast<double>(view_of(x).shape[i]);
  return div(sum(x, axes, keepdim), count);
}

Tensor max(const Tensor& x, const Shape& axes, bool keepdim) {
  static constexpr auto kRule = rule("max", kExtremum);
  return extremum(Op::MAX, kRule, x, axes, keepdim);
}
Tensor min(const Tensor& x, const Shape& axes, bool keepdim) {
  static constexpr auto kRule = rule("min", kExtremum);
  return extremum(Op::MIN, kRule, x, axes, keepdim);
}

Tensor argmax(const Tensor& x, const Shape& axes, bool keepdim) {
  require(Op::ARGMAX, x);
  if (is_boolean(dtype_of(x))) return argmax(cast(x, DType::i64), axes, keepdim);
  const unsigned mask = axis_mask(axes, x.rank(), "argmax");
  const Tensor kept = reduce(Op::ARGMAX, x, mask, PLUGRAD_I64);
  return keepdim ? kept : without_axes(kept, mask);
}

}  // namespace plugrad
