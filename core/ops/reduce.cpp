#include <plugrad/ops/reduce.hpp>

#include <core/ops/autocast_rules.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
// The given axes as a mask, or all of them if none is given. Rank 0 accepts axis 0 too, with nothing to reduce.
unsigned axis_mask(const Shape& axes, int rank, const char* what) {
  unsigned mask = axes.empty() ? (1u << rank) - 1 : 0;
  for (int64_t axis : axes) {
    const int at = normal_axis(axis, std::max(1, rank), what);
    if (mask >> at & 1)
      throw Error(Code::invalid,
                  std::string("[") + what + "] axis " + std::to_string(at) + " appears twice in " + axes.text());
    mask |= 1u << at;
  }
  return rank ? mask : 0;
}

// A shape with extent 1 at the axes of the mask.
Shape kept_shape(Shape shape, unsigned mask) {
  for (int i = 0; i < shape.rank(); ++i)
    if (mask >> i & 1) shape[static_cast<size_t>(i)] = 1;
  return shape;
}

// A dense view without the axes of the mask. These axes have extent 1.
plugrad_view without_axes(plugrad_view view, unsigned mask) {
  int rank = 0;
  for (int i = 0; i < view.rank; ++i) {
    if (mask >> i & 1) continue;
    view.shape[rank] = view.shape[i];
    view.strides[rank++] = view.strides[i];
  }
  view.rank = static_cast<uint8_t>(rank);
  return view;
}

// Reduces over the axes of the mask. The kernel sees them with extent 1, also if the result omits them.
Tensor reduce(Op op, const Tensor& x, unsigned mask, bool keepdim, uint8_t out_dtype) {
  DeviceState& device = device_of(x);
  plugrad_view kept = view_of(x);
  for (int i = 0; i < kept.rank; ++i)
    if (mask >> i & 1) kept.shape[i] = 1;
  kept.dtype = out_dtype;
  kept.offset = 0;
  set_dense(kept, device.info.alignment);
  const plugrad_view shape = keepdim ? kept : without_axes(kept, mask);
  if (!view_of(x).count && kept.count) {
    if (op == Op::SUM) return filled(device, shape, out_dtype, 0);
    throw Error(Code::invalid,
                "[" + op_label(static_cast<uint32_t>(op)) + "] no elements to reduce: x has shape " + x.shape().text());
  }
  Tensor out = empty_like(op, device, shape, out_dtype);
  kept.buffer = view_of(out).buffer;
  kept.offset = view_of(out).offset;
  if (kept.count) run(op, {operand(out, kept)}, {x});
  return out;
}

// x with all axes of `whole`; the axes of the mask have extent 1.
Tensor with_kept_axes(const Tensor& x, const Shape& whole, unsigned mask) { return reshape(x, kept_shape(whole, mask)); }

// The gradient of max and min: all elements equal to the result share it equally.
constexpr auto kExtremum =
    gradient<kInput0, kOutput, kPayload>([](const Tensor& grad, const Tensor& x, const Tensor& best, unsigned mask) {
      Tensor share;
      {
        const NoGrad constant;
        const Tensor ties = cast(eq(x, with_kept_axes(best, x.shape(), mask)), x.dtype());
        share = div(ties, reduce(Op::SUM, ties, mask, true, dtype_of(ties)));
      }
      return mul(expand(with_kept_axes(grad, x.shape(), mask), x.shape()), share);
    });
using ExtremumRule = RuleOf<unsigned, kInput0 | kOutput | kPayload>;

Tensor extremum(Op op, const ExtremumRule& rule, const Tensor& x, const Shape& axes, bool keepdim) {
  require(op, x);
  if (is_boolean(dtype_of(x))) return cast(extremum(op, rule, cast(x, DType::i64), axes, keepdim), DType::boolean);
  const unsigned mask = axis_mask(axes, x.rank(), rule.name);
  return differentiable(rule, mask, reduce(op, x, mask, keepdim, dtype_of(x)), x);
}
}  // namespace

Tensor sum(const Tensor& x, const Shape& axes, bool keepdim) {
  if (autocasting()) [[unlikely]]
    return in_f32(sum, x, axes, keepdim);
  static constexpr auto kRule =
      rule("sum", gradient<kShape, kPayload>([](const Tensor& grad, const Shape& shape, unsigned mask) {
             return expand(with_kept_axes(grad, shape, mask), shape);
           }));
  require(Op::SUM, x);
  const unsigned mask = axis_mask(axes, x.rank(), "sum");
  const uint8_t dtype = op_info(static_cast<uint32_t>(Op::SUM))->operand_dtype(0, dtype_of(x));
  return differentiable(kRule, mask, reduce(Op::SUM, x, mask, keepdim, dtype), x);
}

Tensor mean(const Tensor& x, const Shape& axes, bool keepdim) {
  if (autocasting()) [[unlikely]]
    return in_f32(mean, x, axes, keepdim);
  require_defined(x, "mean");
  // The sum of halves may not fit a half although their mean does.
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

Tensor amax(const Tensor& x, const Shape& axes, bool keepdim) { return max(x, axes, keepdim); }
Tensor amin(const Tensor& x, const Shape& axes, bool keepdim) { return min(x, axes, keepdim); }
MinMax aminmax(const Tensor& x, const Shape& axes, bool keepdim) { return {min(x, axes, keepdim), max(x, axes, keepdim)}; }

Tensor argmax(const Tensor& x, const Shape& axes, bool keepdim) {
  require(Op::ARGMAX, x);
  if (is_boolean(dtype_of(x))) return argmax(cast(x, DType::i64), axes, keepdim);
  const unsigned mask = axis_mask(axes, x.rank(), "argmax");
  return reduce(Op::ARGMAX, x, mask, keepdim, PLUGRAD_I64);
}

}  // namespace plugrad
