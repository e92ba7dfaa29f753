#include <core/ops/run.hpp>

#include <core/runtime/observe/observer.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <algorithm>
#include <cstring>

namespace plugrad {

void throw_not_together(const std::string& what, const Tensor& a, const Tensor& b) {
  if (&device_of(a) != &device_of(b))
    throw Error(Code::invalid, "[" + what + "] operands are on " + device_of(a).name + " and " + device_of(b).name +
                                   ", but must share a device: move one with to(x, device)");
  throw Error(Code::invalid, "[" + what + "] operands are " + dtype_label(dtype_of(a)) + " and " + dtype_label(dtype_of(b)) +
                                 ", but must share a dtype: cast one of them");
}
void throw_not_together(Op op, const Tensor& a, const Tensor& b) {
  throw_not_together(op_label(static_cast<uint32_t>(op)), a, b);
}

Tensor promoted(const char* what, const Tensor& a, const Tensor& b, BinaryFunction f) {
  require_defined(a, what);
  require_defined(b, what);
  if (&device_of(a) != &device_of(b)) throw_not_together(what, a, b);
  const DType dtype = promote_types(a.dtype(), b.dtype());
  return f(cast(a, dtype), cast(b, dtype));
}
Tensor promoted(const Tensor& x, Number beside) { return cast(x, promote_number(x.dtype(), beside.floating())); }
Tensor promoted_to_floating(const Tensor& x) { return cast(x, floating_type(x.dtype())); }

void throw_dtype(Op op, uint8_t dtype, const char* expected) {
  throw Error(Code::invalid, "[" + op_label(static_cast<uint32_t>(op)) + "] an operand is " + dtype_label(dtype) +
                                 ", expected " + expected + ": cast it");
}

plugrad_view common_shape(Op op, const plugrad_view& a, const plugrad_view& b, uint64_t alignment, const char* what) {
  const plugrad_view& small = a.rank < b.rank ? a : b;
  const plugrad_view& large = a.rank < b.rank ? b : a;
  plugrad_view out = large;
  out.offset = 0;
  for (int i = 0; i < small.rank; ++i) {
    int64_t& extent = out.shape[out.rank - small.rank + i];
    if (extent == 1) extent = small.shape[i];
    else if (small.shape[i] != 1 && small.shape[i] != extent)
      throw Error(Code::invalid, "[" + (what ? what : op_label(static_cast<uint32_t>(op))) +
                                     "] shapes do not broadcast: " + shape_of(a).text() + " and " + shape_of(b).text());
  }
  set_dense(out, alignment);
  return out;
}

[[gnu::noinline]] Tensor binary_broadcast(Op op, const Tensor& a, const Tensor& b, uint8_t out_dtype) {
  DeviceState& device = device_of(a);
  const uint64_t alignment = device.info.alignment;
  const plugrad_view shape = common_shape(op, view_of(a), view_of(b), alignment);
  plugrad_view expanded[2];
  const auto as_shape = [&](const Tensor& x, plugrad_view& place) -> const plugrad_view& {
    return same_shape(view_of(x), shape) ? view_of(x) : place = broadcast_to(view_of(x), shape, alignment);
  };
  const plugrad_view &x = as_shape(a, expanded[0]), &y = as_shape(b, expanded[1]);
  Tensor out = empty_like(op, device, shape, out_dtype);
  if (shape.count) run(op, {out}, {operand(a, x), operand(b, y)});
  return out;
}

namespace {
Immediate lifted_operand(uint8_t dtype, Number value) {
  Immediate made = immediate(dtype, value.lifted_value(), 0);
  const uint32_t source = value.source();
  static_assert(sizeof source == sizeof made.view.reserved);
  std::memcpy(made.view.reserved, &source, sizeof source);
  ++observe::lifted.made;
  return made;
}
}  // namespace

Immediate number_operand(Op op, uint8_t dtype, Number value) {
  if (value.source() && is_inexact(dtype)) [[unlikely]]
    return lifted_operand(dtype, value);
  const bool integral = !is_inexact(dtype);
  if (integral && value.floating() && value.real() != static_cast<double>(value.integer()))
    throw Error(Code::invalid, "[" + op_label(static_cast<uint32_t>(op)) + "] the number " + number_text(value.real()) +
                                   " is not whole, but the tensor is " + dtype_label(dtype) +
                                   ": cast the tensor to a floating dtype");
  if (is_boolean(dtype) && value.integer() != 0 && value.integer() != 1)
    throw Error(Code::invalid, "[" + op_label(static_cast<uint32_t>(op)) + "] the number " +
                                   std::to_string(value.integer()) + " is neither 0 nor 1, but the tensor is bool");
  return immediate(dtype, value.real(), value.integer());
}

Tensor binary_number(Op op, const Tensor& a, Number b, uint8_t out_dtype) {
  const Immediate number = number_operand(op, dtype_of(a), b);
  Tensor out = empty_like(op, device_of(a), view_of(a), out_dtype);
  if (view_of(out).count) run(op, {out}, {a, number});
  return out;
}

Tensor binary_number(Op op, Number a, const Tensor& b, uint8_t out_dtype) {
  const Immediate number = number_operand(op, dtype_of(b), a);
  Tensor out = empty_like(op, device_of(b), view_of(b), out_dtype);
  if (view_of(out).count) run(op, {out}, {number, b});
  return out;
}

Tensor filled(DeviceState& device, const plugrad_view& like, uint8_t dtype, Number value) {
  const Immediate number = number_operand(Op::FILL, dtype, value);
  Tensor out = empty_like(Op::FILL, device, like, dtype);
  if (view_of(out).count) run(Op::FILL, {out}, {number});
  return out;
}

}  // namespace plugrad
