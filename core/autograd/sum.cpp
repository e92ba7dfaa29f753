#include <core/autograd/sum.hpp>

#include <core/autograd/rule.hpp>

#include <algorithm>

namespace plugrad {
namespace {
constexpr auto kPass = gradient([](const Tensor& grad) { return grad; });

Tensor copied(const Tensor& x) {
  static constexpr auto kRule = rule("clone", kPass);
  Tensor out = empty_like(Op::COPY, device_of(x), view_of(x), dtype_of(x));
  if (view_of(x).count) run(Op::COPY, {out}, {x});
  return differentiable(kRule, std::move(out), x);
}

// Sums x over the axes of extent 1 in `kept`. The ranks are equal.
Tensor summed(const Tensor& x, const Shape& kept) {
  Tensor out = empty(Op::SUM, device_of(x), kept, dtype_of(x));
  if (!view_of(out).count) return out;
  if (view_of(x).count) run(Op::SUM, {out}, {x});
  else run(Op::FILL, {out}, {immediate(dtype_of(x), 0, 0)});
  return out;
}

[[noreturn]] void throw_not_together(const Tensor& a, const Tensor& b) {
  throw Error(Code::invalid, "[backward] a tensor has gradients on " + device_of(a).name + ", " + dtype_label(dtype_of(a)) +
                                 ", and " + device_of(b).name + ", " + dtype_label(dtype_of(b)) +
                                 ": if it was moved after its use, clear its gradient and compute again");
}
}  // namespace

Tensor add_gradients(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule = rule("+", kPass, kPass);
  if (&device_of(a) != &device_of(b) || dtype_of(a) != dtype_of(b)) [[unlikely]]
    throw_not_together(a, b);
  Local& l = local();
  Tensor out = empty_like(l, Op::ADD, device_of(a), view_of(a), dtype_of(a));
  if (view_of(a).count) [[likely]]
    run(l, Op::ADD, {out}, {a, b});
  return differentiable(kRule, std::move(out), a, b);
}

Tensor part_of(const Tensor& x, int index) {
  plugrad_view v = view_of(x);
  v.dtype = part_dtype(v.dtype);
  v.offset += static_cast<uint64_t>(index) * dtype_size(v.dtype);
  for (int i = 0; i < v.rank; ++i) v.strides[i] *= 2;
  set_layout(v, device_of(x).info.alignment);
  return with_view(x, v);
}

Tensor conjugated(const Tensor& x) {
  static constexpr auto kRule = for_complex(rule("conj", gradient([](const Tensor& grad) { return conjugated(grad); })));
  Tensor out = empty_like(Op::COPY, device_of(x), view_of(x), dtype_of(x));
  if (view_of(x).count) {
    run(Op::COPY, {part_of(out, 0)}, {part_of(x, 0)});
    run(Op::NEG, {part_of(out, 1)}, {part_of(x, 1)});
  }
  return differentiable(kRule, std::move(out), x);
}

Tensor expand_to(const Tensor& x, const Shape& shape) {
  static constexpr auto kRule =
      rule("expand", gradient<kShape>([](const Tensor& grad, const Shape& from) { return sum_to(grad, from); }));
  const uint64_t alignment = device_of(x).info.alignment;
  const plugrad_view larger = broadcast_to(view_of(x), dense_view(shape, dtype_of(x), alignment), alignment);
  return differentiable(kRule, with_view(x, larger), x);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  static constexpr auto kRule =
      rule("sum", gradient<kShape>([](const Tensor& grad, const Shape& from) { return expand_to(grad, from); }));
  if (x.shape() == shape) return x;
  Shape kept;
  for (int i = shape.rank(); i < x.rank(); ++i) kept.push_back(1);
  for (const int64_t extent : shape) kept.push_back(extent);
  const Tensor sums = summed(x, kept);
  plugrad_view v = view_of(sums);
  v.rank = static_cast<uint8_t>(shape.rank());
  std::ranges::copy(shape, v.shape);
  set_dense(v, device_of(x).info.alignment);
  return differentiable(kRule, with_view(sums, v), x);
}

Tensor filled_like(DeviceState& device, const plugrad_view& like, int value) {
  Tensor out = empty_like(Op::FILL, device, like, like.dtype);
  if (like.count) run(Op::FILL, {out}, {immediate(like.dtype, value, value)});
  return out;
}

Tensor converted(const Tensor& x, uint8_t dtype) {
  static constexpr auto kRule = rule(
      "cast", gradient<kDType>([](const Tensor& grad, DType from) { return converted(grad, static_cast<uint8_t>(from)); }));
  if (dtype_of(x) == dtype) return x;
  Tensor out = empty_like(Op::CAST, device_of(x), view_of(x), dtype);
  if (view_of(x).count) run(Op::CAST, {out}, {x});
  return differentiable(kRule, std::move(out), x);
}

Tensor own(Tensor& grad) {
  const bool alone =
      grad.impl().refs.load(std::memory_order_acquire) == 1 && storage_of(grad)->refs.load(std::memory_order_acquire) == 1;
  return alone && grad.is_contiguous() ? std::move(grad) : copied(grad);
}

}  // namespace plugrad
