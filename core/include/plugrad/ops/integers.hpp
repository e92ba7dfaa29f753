// Elementwise division with a whole quotient, for all numbers, and operations on the bits of integers. Operands broadcast,
// and their dtypes are promoted as in add.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns a / b rounded down. Integers stay integers; an integer divided by 0 gives 0. The gradient is 0.
PLUGRAD_API Tensor floor_divide(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor floor_divide(const Tensor& a, Number b);
PLUGRAD_API Tensor floor_divide(Number a, const Tensor& b);
// Returns a - b floor(a / b), with the sign of b; an integer divided by 0 gives 0. The derivatives are 1 and -floor(a / b).
PLUGRAD_API Tensor remainder(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor remainder(const Tensor& a, Number b);
PLUGRAD_API Tensor remainder(Number a, const Tensor& b);
// Returns a - b trunc(a / b), with the sign of a; an integer divided by 0 gives 0. The derivatives are 1 and -trunc(a / b).
// The result is exact, but a device without FMOD rounds if a / b is large.
PLUGRAD_API Tensor fmod(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor fmod(const Tensor& a, Number b);

// Returns the bits set in both operands; for bools the logical and. Throws Error (invalid) for floating operands.
PLUGRAD_API Tensor bitwise_and(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor bitwise_and(const Tensor& a, Number b);
// Returns the bits set in either operand; for bools the logical or. Throws Error (invalid) for floating operands.
PLUGRAD_API Tensor bitwise_or(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor bitwise_or(const Tensor& a, Number b);
// Returns the bits set in exactly one operand; for bools the logical exclusive or. Throws Error (invalid) for floating
// operands.
PLUGRAD_API Tensor bitwise_xor(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor bitwise_xor(const Tensor& a, Number b);
// Returns x with all bits inverted; for bools the logical not. Throws Error (invalid) for floating operands.
PLUGRAD_API Tensor bitwise_not(const Tensor& x);
// Returns a 2^b, which wraps, and 0 where b is negative or at least the number of bits. Integers; bools count as i64.
PLUGRAD_API Tensor bitwise_left_shift(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor bitwise_left_shift(const Tensor& a, Number b);
PLUGRAD_API Tensor bitwise_left_shift(Number a, const Tensor& b);
// Returns a 2^-b rounded down, and 0, or -1 for a negative a, where b is negative or at least the number of bits. Integers;
// bools count as i64.
PLUGRAD_API Tensor bitwise_right_shift(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor bitwise_right_shift(const Tensor& a, Number b);
PLUGRAD_API Tensor bitwise_right_shift(Number a, const Tensor& b);

inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator&(const Tensor& a, Number b) { return bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator|(const Tensor& a, Number b) { return bitwise_or(a, b); }
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator^(const Tensor& a, Number b) { return bitwise_xor(a, b); }
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
inline Tensor operator<<(const Tensor& a, const Tensor& b) { return bitwise_left_shift(a, b); }
inline Tensor operator<<(const Tensor& a, Number b) { return bitwise_left_shift(a, b); }
inline Tensor operator>>(const Tensor& a, const Tensor& b) { return bitwise_right_shift(a, b); }
inline Tensor operator>>(const Tensor& a, Number b) { return bitwise_right_shift(a, b); }
// Returns a - b floor(a / b), with the sign of b, as in Python and unlike % of integers in C++.
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, Number b) { return remainder(a, b); }

}  // namespace plugrad
