// Elementwise ops. Operands broadcast by NumPy's rules and must be on the same device; Error (invalid) names both devices if
// they differ. Operands of two dtypes are converted to promote_types of both dtypes. A number takes the tensor's dtype, but
// a fraction together with integers or bools gives f32, and a whole number together with bools gives i64. Division and
// functions with floating results give f32 for integers and bools. Comments on the functions state the gradients at kinks.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

PLUGRAD_API Tensor add(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor add(const Tensor& a, Number b);
PLUGRAD_API Tensor sub(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor sub(const Tensor& a, Number b);
PLUGRAD_API Tensor sub(Number a, const Tensor& b);
PLUGRAD_API Tensor mul(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor mul(const Tensor& a, Number b);
PLUGRAD_API Tensor div(const Tensor& a, const Tensor& b);  // integers give f32
PLUGRAD_API Tensor div(const Tensor& a, Number b);
PLUGRAD_API Tensor div(Number a, const Tensor& b);
// Returns a^b. Integers to the power of a whole number stay integers and wrap. The derivative with respect to b is 0 where a
// = 0 and b >= 0, and NaN where a < 0. Throws Error (invalid) for negative powers of integers; in a compiled step, which
// cannot, such a power is 1 / a^-b without its fraction.
PLUGRAD_API Tensor pow(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor pow(const Tensor& a, Number b);  // the derivative with respect to a is 0 at b = 0
PLUGRAD_API Tensor pow(Number a, const Tensor& b);
PLUGRAD_API Tensor maximum(const Tensor& a, const Tensor& b);  // the gradient is halved where a equals b
PLUGRAD_API Tensor maximum(const Tensor& a, Number b);
PLUGRAD_API Tensor minimum(const Tensor& a, const Tensor& b);  // the gradient is halved where a equals b
PLUGRAD_API Tensor minimum(const Tensor& a, Number b);

PLUGRAD_API Tensor neg(const Tensor& x);
PLUGRAD_API Tensor abs(const Tensor& x);   // gradient 0 at 0
PLUGRAD_API Tensor sign(const Tensor& x);  // the gradient is 0
PLUGRAD_API Tensor sqrt(const Tensor& x);
PLUGRAD_API Tensor exp(const Tensor& x);
PLUGRAD_API Tensor log(const Tensor& x);
PLUGRAD_API Tensor tanh(const Tensor& x);
PLUGRAD_API Tensor sigmoid(const Tensor& x);
PLUGRAD_API Tensor relu(const Tensor& x);  // gradient 0 at 0; integers stay integers
// Returns the error function, 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
PLUGRAD_API Tensor erf(const Tensor& x);

// Returns whether a equals b, as bool.
PLUGRAD_API Tensor eq(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor eq(const Tensor& a, Number b);
// Returns whether a differs from b, as bool.
PLUGRAD_API Tensor ne(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor ne(const Tensor& a, Number b);
// Returns whether a < b, as bool.
PLUGRAD_API Tensor lt(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor lt(const Tensor& a, Number b);
// Returns whether a <= b, as bool.
PLUGRAD_API Tensor le(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor le(const Tensor& a, Number b);
// Returns whether a > b, as bool.
PLUGRAD_API Tensor gt(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor gt(const Tensor& a, Number b);
// Returns whether a >= b, as bool.
PLUGRAD_API Tensor ge(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor ge(const Tensor& a, Number b);
// Returns a where condition (bool) is true, and b elsewhere. condition, a and b broadcast.
PLUGRAD_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor where(const Tensor& condition, const Tensor& a, Number b);
PLUGRAD_API Tensor where(const Tensor& condition, Number a, const Tensor& b);

// Converts x to dtype as sdk/ops.md defines; returns x if x has this dtype. Gradients flow between floating dtypes.
PLUGRAD_API Tensor cast(const Tensor& x, DType dtype);
// Returns a dense copy with its own storage.
PLUGRAD_API Tensor clone(const Tensor& x);
// Copies x to a device; returns x itself if x is on this device. Gradients flow back.
PLUGRAD_API Tensor to(const Tensor& x, Device device);

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, Number b) { return add(a, b); }
inline Tensor operator+(Number a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, Number b) { return sub(a, b); }
inline Tensor operator-(Number a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, Number b) { return mul(a, b); }
inline Tensor operator*(Number a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, Number b) { return div(a, b); }
inline Tensor operator/(Number a, const Tensor& b) { return div(a, b); }

}  // namespace plugrad
