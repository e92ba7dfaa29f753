// Checks of the public gradients.
#pragma once
#include <core/autograd/node.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>

namespace plugrad {

// While it lives, this thread's ops are not recorded and keep their dtypes.
class WithoutGraph {
 public:
  WithoutGraph() : before_(local().mode & kModes) { local().mode &= ~kModes; }
  ~WithoutGraph() { local().mode |= before_; }
  WithoutGraph(const WithoutGraph&) = delete;
  WithoutGraph& operator=(const WithoutGraph&) = delete;

 private:
  static constexpr uint32_t kModes = kRecording | kAutocasting;
  const uint32_t before_;
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

}  // namespace plugrad
