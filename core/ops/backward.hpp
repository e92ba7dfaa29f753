// Checks of the public gradients.
#pragma once
#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>

namespace plugrad {

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

}  // namespace plugrad
