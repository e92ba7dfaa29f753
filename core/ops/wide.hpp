// Formulas of a tensor with steps that would lose digits in halves.
#pragma once
#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <span>
#include <utility>

namespace plugrad {

// The formula of x in f32 at least, unrecorded, in x's dtype. Integers and bools give f32.
template <class Formula> Tensor in_wide(const char* name, const Tensor& x, Formula formula) {
  require_real(name, x);
  const NoGrad unrecorded;
  const Tensor floating = promoted_to_floating(ungraphed(x));
  return cast(formula(at_least_f32(floating)), floating.dtype());
}

// c[0] T0(x) + c[1] T1(x) + ... of Chebyshev polynomials, by Clenshaw's recurrence.
inline Tensor chebyshev(const Tensor& x, std::span<const double> c) {
  const Tensor twice = mul(x, 2);
  Tensor next = mul(x, 0), sum = add(next, c[c.size() - 1]);
  for (size_t i = c.size() - 2; i > 0; --i) {
    Tensor further = add(sub(mul(twice, sum), next), c[i]);
    next = std::exchange(sum, std::move(further));
  }
  return add(sub(mul(x, sum), next), c[0]);
}

}  // namespace plugrad
