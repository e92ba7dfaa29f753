// Elementwise ops. Operands broadcast as NumPy defines it; they share a device and a dtype, or it is an error that names
// both. A number takes the tensor's dtype; a fraction beside an integer tensor is an error. Gradients at kinks stand beside
// each function.
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
PLUGRAD_API Tensor div(const Tensor& a, const Tensor& b);  // floating dtypes
PLUGRAD_API Tensor div(const Tensor& a, Number b);
PLUGRAD_API Tensor div(Number a, const Tensor& b);
// a^b, floating dtypes. Its derivative by b is 0 where a = 0 and b >= 0, NaN where a < 0.
PLUGRAD_API Tensor pow(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor pow(const Tensor& a, Number b);         // d/da at b = 0 is 0
PLUGRAD_API Tensor pow(Number a, const Tensor& b);
PLUGRAD_API Tensor maximum(const Tensor& a, const Tensor& b);  // the gradient is halved where they are equal
PLUGRAD_API Tensor maximum(const Tensor& a, Number b);
PLUGRAD_API Tensor minimum(const Tensor& a, const Tensor& b);  // the gradient is halved where they are equal
PLUGRAD_API Tensor minimum(const Tensor& a, Number b);

PLUGRAD_API Tensor neg(const Tensor& x);
PLUGRAD_API Tensor abs(const Tensor& x);   // gradient 0 at 0
PLUGRAD_API Tensor sign(const Tensor& x);  // gradient 0
PLUGRAD_API Tensor sqrt(const Tensor& x);
PLUGRAD_API Tensor exp(const Tensor& x);
PLUGRAD_API Tensor log(const Tensor& x);
PLUGRAD_API Tensor tanh(const Tensor& x);
PLUGRAD_API Tensor sigmoid(const Tensor& x);
PLUGRAD_API Tensor relu(const Tensor& x);  // gradient 0 at 0
// The error function, 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x; floating dtypes.
PLUGRAD_API Tensor erf(const Tensor& x);

// Comparisons give bool.
PLUGRAD_API Tensor eq(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor eq(const Tensor& a, Number b);
PLUGRAD_API Tensor ne(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor ne(const Tensor& a, Number b);
PLUGRAD_API Tensor lt(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor lt(const Tensor& a, Number b);
PLUGRAD_API Tensor le(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor le(const Tensor& a, Number b);
PLUGRAD_API Tensor gt(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor gt(const Tensor& a, Number b);
PLUGRAD_API Tensor ge(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor ge(const Tensor& a, Number b);
// a where condition (bool) holds, else b; broadcasts all three.
PLUGRAD_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor where(const Tensor& condition, const Tensor& a, Number b);
PLUGRAD_API Tensor where(const Tensor& condition, Number a, const Tensor& b);

// x in another dtype, rounded as sdk/ops.md says; x itself where it has it. Gradients flow between floating dtypes.
PLUGRAD_API Tensor cast(const Tensor& x, DType dtype);
// A copy with a storage of its own, dense.
PLUGRAD_API Tensor clone(const Tensor& x);
// x on another device; x itself where it is there. Gradients flow back.
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
