#include <core/ops/slicing.hpp>

#include <core/ops/run.hpp>

namespace plugrad {

plugrad_view sliced(const plugrad_view& x, const Part& part) {
  plugrad_view v = x;
  if (part.count)
    v.offset += static_cast<uint64_t>(part.start * v.strides[part.axis] * static_cast<int64_t>(dtype_size(v.dtype)));
  v.shape[part.axis] = part.count;
  v.strides[part.axis] *= part.step;
  return v;
}

Tensor place(const Tensor& x, const Shape& whole, const Part& where) {
  static constexpr auto kRule =
      rule("place", gradient<kPayload>([](const Tensor& grad, const Part& part) { return strided_part(grad, part); }));
  DeviceState& device = device_of(x);
  Tensor out = filled(device, dense_view(whole, dtype_of(x), device.info.alignment), dtype_of(x), 0);
  plugrad_view part = sliced(view_of(out), where);
  set_layout(part, device.info.alignment);
  if (part.count) run(Op::COPY, {operand(out, part)}, {x});
  return differentiable(kRule, where, std::move(out), x);
}

namespace {
// Adds x to a part of the sum. The gradients of several slices of a tensor then share a single tensor of its size.
bool add_to_part(const Tensor& sum, const Tensor& x, const Part& where) {
  if (&device_of(sum) != &device_of(x) || dtype_of(sum) != dtype_of(x)) return false;
  plugrad_view part = sliced(view_of(sum), where);
  set_layout(part, device_of(sum).info.alignment);
  if (part.count) run(Op::ADD, {operand(sum, part)}, {operand(sum, part), operand(x)});
  return true;
}
}  // namespace

Tensor strided_part(const Tensor& x, const Part& part) {
  static constexpr auto kRule = rule(
      "slice", gradient<kShape, kSum, kPayload>([](const Tensor& grad, const Shape& whole, Tensor* sum, const Part& taken) {
        return sum && add_to_part(*sum, grad, taken) ? Tensor() : place(grad, whole, taken);
      }));
  plugrad_view v = sliced(view_of(x), part);
  set_layout(v, device_of(x).info.alignment);
  return differentiable(kRule, part, with_view(x, v), x);
}

}  // namespace plugrad
