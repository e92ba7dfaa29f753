// Functions of complex numbers, as formulas of their parts. Nothing is recorded: the callers state gradients.
//
// Branch cuts and signs of zeros are those of C99's Annex G. The inverse functions are those of W. Kahan, "Branch cuts for
// complex elementary functions, or much ado about nothing's sign bit" (1987), whose formulas avoid most cancellations.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad::complex_numbers {

// The real and the imaginary part: real tensors of one shape.
struct Parts {
  Tensor re, im;
};
// Views of x's parts. A real tensor has an imaginary part of zeros.
Parts parts_of(const Tensor& x);
// A new complex tensor with these parts.
Tensor joined(const Parts& parts);
// f of x's parts, as a complex tensor.
template <class F> Tensor of_parts(F f, const Tensor& x) { return joined(f(parts_of(x))); }

// |x|, and the angle in [-pi, pi].
Tensor length(const Parts& x);
Tensor direction(const Parts& x);

Parts product(const Parts& a, const Parts& b);
Parts quotient(const Parts& a, const Parts& b);
Parts power(const Parts& a, const Parts& b);
Parts power(const Parts& a, double b);
Parts sign(const Parts& x);  // x / |x|, and 0 at 0
Parts sqrt(const Parts& x);
Parts exp(const Parts& x);
Parts expm1(const Parts& x);
Parts log(const Parts& x);
Parts log1p(const Parts& x);

Parts sin(const Parts& x);
Parts cos(const Parts& x);
Parts tan(const Parts& x);
Parts asin(const Parts& x);
Parts acos(const Parts& x);
Parts atan(const Parts& x);
Parts sinh(const Parts& x);
Parts cosh(const Parts& x);
Parts tanh(const Parts& x);
Parts asinh(const Parts& x);
Parts acosh(const Parts& x);
Parts atanh(const Parts& x);

}  // namespace plugrad::complex_numbers
