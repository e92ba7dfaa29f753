// What the public gradients share.
#pragma once
#include <core/autograd/autocast.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {

// While it lives, this thread's ops are not recorded and keep their dtypes.
class WithoutGraph {
  const NoGrad unrecorded_;
  const WithoutAutocast own_dtypes_;
};

// Throws Error (invalid) unless both are floating, and share a device and a dtype.
inline void require_gradient(const char* name, const Tensor& grad, const Tensor& x) {
  require_floating(name, grad);
  require_floating(name, x);
  require_together(name, grad, x);
}
// The same, and a shape.
inline void require_gradient_alike(const char* name, const Tensor& grad, const Tensor& x) {
  require_gradient(name, grad, x);
  if (!same_shape(view_of(grad), view_of(x)))
    refuse(name, "grad is " + grad.shape().text() + ", but the other operand " + x.shape().text() + ": expected one shape");
}

// f(grad, y, axis) with an axis from 0, unrecorded. Rank 0 has one line of one element.
template <class F> Tensor gradient_along(const char* name, const Tensor& grad, const Tensor& y, int axis, F f) {
  require_gradient_alike(name, grad, y);
  const int at = normal_axis(axis, std::max(1, y.rank()), name);
  const WithoutGraph plainly;
  if (!y.rank()) return squeeze(f(unsqueeze(grad, 0), unsqueeze(y, 0), 0), {0});
  return f(grad, y, at);
}

}  // namespace plugrad
