// Runs an op on tensors, unrecorded: checks and broadcasts the operands, and dispatches the op.
#pragma once
#include <core/autograd/rule.hpp>
#include <core/runtime/dispatch/dispatch.hpp>
#include <core/tensor/impl.hpp>

#include <string>

namespace plugrad {

[[noreturn]] void throw_not_together(const std::string& what, const Tensor& a, const Tensor& b);
[[noreturn]] void throw_not_together(Op op, const Tensor& a, const Tensor& b);
[[noreturn]] void throw_dtype(Op op, uint8_t dtype, const char* expected);
// what: names the function in an error's message, in place of the op.
plugrad_view common_shape(Op op, const plugrad_view& a, const plugrad_view& b, uint64_t alignment,
                          const char* what = nullptr);
Tensor binary_broadcast(Op op, const Tensor& a, const Tensor& b, uint8_t out_dtype);

// Whether operands need no conversion: both are defined, and they share a device and a dtype.
[[gnu::always_inline]] inline bool is_together(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && &device_of(a) == &device_of(b) && dtype_of(a) == dtype_of(b);
}
// f of operands converted to their common dtype. Throws Error if an operand is undefined or the devices differ. what: the
// function's name.
using BinaryFunction = Tensor (*)(const Tensor& a, const Tensor& b);
Tensor promoted(const char* what, const Tensor& a, const Tensor& b, BinaryFunction f);
// x in the dtype of an op on x and a number; x itself if it has the dtype already.
Tensor promoted(const Tensor& x, Number beside);
// x in the dtype of functions with floating results; x itself if it has the dtype already.
Tensor promoted_to_floating(const Tensor& x);

[[gnu::always_inline]] inline void require(Op op, const Tensor& x) {
  if (!x.defined()) [[unlikely]]
    throw Error(Code::invalid, "[" + op_label(static_cast<uint32_t>(op)) + "] an undefined tensor: give it a value first");
}
[[gnu::always_inline]] inline void require_together(Op op, const Tensor& a, const Tensor& b) {
  require(op, a);
  require(op, b);
  if (&device_of(a) != &device_of(b) || dtype_of(a) != dtype_of(b)) [[unlikely]]
    throw_not_together(op, a, b);
}
// The same for functions composed of ops. The caller guarantees that both tensors are defined.
inline void require_together(const char* what, const Tensor& a, const Tensor& b) {
  if (&device_of(a) != &device_of(b) || dtype_of(a) != dtype_of(b)) [[unlikely]]
    throw_not_together(what, a, b);
}
inline void require_floating(Op op, uint8_t dtype) {
  if (!is_floating(dtype)) [[unlikely]]
    throw_dtype(op, dtype, "a floating dtype");
}
inline void require_number_dtype(Op op, uint8_t dtype) {
  if (is_boolean(dtype)) [[unlikely]]
    throw_dtype(op, dtype, "a dtype of numbers");
}

// A number as an operand beside a tensor of this dtype. Throws Error (invalid) for a fraction if the dtype is not floating.
Immediate number_operand(Op op, uint8_t dtype, Number value);

[[gnu::always_inline]] inline Tensor unary(Op op, const Tensor& x) {
  require(op, x);
  Local& l = local();
  Tensor out = empty_like(l, op, device_of(x), view_of(x), dtype_of(x));
  if (view_of(x).count) [[likely]]
    run(l, op, {out}, {x});
  return out;
}

// out = op(a, b), elementwise, broadcast. out_dtype differs from the operands' for comparisons.
[[gnu::always_inline]] inline Tensor binary_alike(Op op, const Tensor& a, const Tensor& b, uint8_t out_dtype) {
  Local& l = local();
  Tensor out = empty_like(l, op, device_of(a), view_of(a), out_dtype);
  if (view_of(a).count) [[likely]]
    run(l, op, {out}, {a, b});
  return out;
}
[[gnu::always_inline]] inline Tensor binary(Op op, const Tensor& a, const Tensor& b, uint8_t out_dtype) {
  if (!same_shape(view_of(a), view_of(b))) [[unlikely]]
    return binary_broadcast(op, a, b, out_dtype);
  return binary_alike(op, a, b, out_dtype);
}

// The same with a number on the right, or on the left.
Tensor binary_number(Op op, const Tensor& a, Number b, uint8_t out_dtype);
Tensor binary_number(Op op, Number a, const Tensor& b, uint8_t out_dtype);

// Whether a gradient may use its fused kernel: a fused kernel cannot be differentiated again.
inline bool may_fuse() { return !recording(); }
inline void count_decomposition(const Tensor& x) { plugrad::count_decomposition(device_of(x)); }

Tensor filled(DeviceState& device, const plugrad_view& like, uint8_t dtype, Number value);

}  // namespace plugrad
