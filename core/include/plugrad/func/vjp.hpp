// Functions of functions: gradients, in reverse mode.
#pragma once
#include <plugrad/func/vmap.hpp>

#include <functional>
#include <memory>

namespace plugrad::func {

// While it lives, this thread records a function of handles of wanted(), also what compiled steps in it do.
class PLUGRAD_API Recorded {
 public:
  Recorded();
  ~Recorded();
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

 private:
  struct Inner;
  std::unique_ptr<Inner> inner_;
};
// Handles of x for a function whose gradients are wanted, whether x requires a gradient or not. Gradients with respect to
// them pass through to x, if it does.
PLUGRAD_API Tensors wanted(const Tensors& x);
// x outside the graph. Unlike Tensor::detach(), it keeps the tangents of x in forward mode.
PLUGRAD_API Tensor ungraphed(const Tensor& x);
// Whether the outputs' gradients depend on more than the handles of wanted(), so that an outer function can differentiate
// them too: on other tensors that require a gradient, or on handles of such tensors. False if recording is off.
PLUGRAD_API bool has_outer_graph(const Tensors& outputs, const Tensors& handles);

struct Vjp {
  Tensors results;
  // Returns the gradients of sum_i <seeds[i], results[i]> for the primals, undefined for a primal on which no result
  // depends. seeds have the shapes of the results. It can be called many times, and inside vmap.
  std::function<Tensors(const Tensors& seeds)> pullback;
};

// Returns f's results at `primals`, which are floating, and the product of any vector with f's Jacobian. f's graph lives as
// long as the pullback.
PLUGRAD_API Vjp vjp(const Function& f, const Tensors& primals);

}  // namespace plugrad::func
