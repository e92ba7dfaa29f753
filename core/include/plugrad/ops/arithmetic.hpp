// Further elementwise arithmetic of two or more tensors. Operands broadcast, and their dtypes are promoted as in add.
// Functions with floating results give f32 for integers and bools. Comments state the gradients at kinks.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns a + alpha b. a and b are converted to the result's dtype before the multiplication.
PLUGRAD_API Tensor add(const Tensor& a, const Tensor& b, Number alpha);
// Returns a - alpha b. a and b are converted to the result's dtype before the multiplication.
PLUGRAD_API Tensor sub(const Tensor& a, const Tensor& b, Number alpha);

// Returns b - alpha a.
PLUGRAD_API Tensor rsub(const Tensor& a, const Tensor& b, Number alpha = 1);
PLUGRAD_API Tensor rsub(const Tensor& a, Number b, Number alpha = 1);
// Returns a 2^b in the common dtype of a and b; integers give f32.
PLUGRAD_API Tensor ldexp(const Tensor& a, const Tensor& b);

enum class RoundingMode { trunc, floor };
// Returns a / b, rounded towards zero or down if a mode is given. With a mode, integers stay integers (0 where b is 0), and
// the gradient is 0.
PLUGRAD_API Tensor div(const Tensor& a, const Tensor& b, std::optional<RoundingMode> rounding_mode);
PLUGRAD_API Tensor div(const Tensor& a, Number b, std::optional<RoundingMode> rounding_mode);
// Returns a + weight (b - a). Floating dtypes.
PLUGRAD_API Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
PLUGRAD_API Tensor lerp(const Tensor& a, const Tensor& b, double weight);

// Returns ln(e^a + e^b), without overflow.
PLUGRAD_API Tensor logaddexp(const Tensor& a, const Tensor& b);
// Returns log2(2^a + 2^b), without overflow.
PLUGRAD_API Tensor logaddexp2(const Tensor& a, const Tensor& b);
// Returns a ln(b); 0 where a is 0 and b is not NaN. The derivative with respect to a is 0 where a = 0 and b <= 0.
PLUGRAD_API Tensor xlogy(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor xlogy(const Tensor& a, Number b);
PLUGRAD_API Tensor xlogy(Number a, const Tensor& b);
// Returns a^b in f64.
PLUGRAD_API Tensor float_power(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor float_power(const Tensor& a, Number b);
PLUGRAD_API Tensor float_power(Number a, const Tensor& b);
// Returns sqrt(a^2 + b^2), without overflow. The gradient at (0, 0) is NaN.
PLUGRAD_API Tensor hypot(const Tensor& a, const Tensor& b);

// Returns |a| with the sign of b, including the sign of a zero; NaN counts as positive. The derivative with respect to a is
// 0 at a = 0. The derivative with respect to b is 0.
PLUGRAD_API Tensor copysign(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor copysign(const Tensor& a, Number b);
// Returns 0 where x < 0 or x is NaN, values where x is 0, and 1 where x > 0, in the common dtype of x and values. The result
// has no gradient.
PLUGRAD_API Tensor heaviside(const Tensor& x, const Tensor& values);
// Returns the larger of a and b; b where a is NaN, a where b is NaN. The gradient is halved where a equals b.
PLUGRAD_API Tensor fmax(const Tensor& a, const Tensor& b);
// Returns the smaller of a and b; b where a is NaN, a where b is NaN. The gradient is halved where a equals b.
PLUGRAD_API Tensor fmin(const Tensor& a, const Tensor& b);

}  // namespace plugrad
