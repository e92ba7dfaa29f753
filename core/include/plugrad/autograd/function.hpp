// Functions with gradients of their own.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plugrad {

struct FunctionState;

// A function with a gradient stated by the program. A derived class defines the two directions. An object serves one call,
// so its members may keep values besides tensors.
//
//   struct Cube : Function {
//     std::string name() const override { return "cube"; }
//     std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
//       save_for_backward(x);
//       return {x[0] * x[0] * x[0]};
//     }
//     std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
//       const Tensor x = saved_tensors()[0];
//       return {grads[0] * x * x * 3};
//     }
//   };
//   Tensor y = apply_function<Cube>({x})[0];
//
// backward is recorded where a pass creates a graph: if it consists of ops on its gradients and on saved_tensors(), the
// function has derivatives of all orders.
class PLUGRAD_API Function {
 public:
  Function();
  virtual ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  virtual std::string name() const = 0;
  // Returns at least one result. Its ops are not recorded. It must not write into inputs that require a gradient.
  virtual std::vector<Tensor> forward(const std::vector<Tensor>& inputs) = 0;
  // Receives the gradient of each result, and returns a gradient for each input. An undefined tensor means 0. The pass sums
  // a gradient over its input's broadcast axes, and converts it to the input's dtype.
  virtual std::vector<Tensor> backward(const std::vector<Tensor>& grads) = 0;

 protected:
  // Called in forward: keeps tensors for backward. Inputs and results stay in the graph; all other tensors are constants for
  // higher derivatives. Undefined tensors are allowed.
  void save_for_backward(std::vector<Tensor> tensors);
  // Called in backward: returns the saved tensors. Throws Error (invalid) if a tensor was changed in place since.
  std::vector<Tensor> saved_tensors() const;
  // Whether backward must compute a gradient for this input.
  bool needs_input_grad(size_t input) const;
  // Called in forward: these results have no gradient. Nor have integers and bools.
  void mark_non_differentiable(const std::vector<Tensor>& results);
  // Called in forward with false: the gradient of an unreached result is undefined, instead of zeros.
  void set_materialize_grads(bool on);

 private:
  friend struct FunctionState;
  friend PLUGRAD_API std::vector<Tensor> apply_function(std::shared_ptr<Function> function,
                                                        const std::vector<Tensor>& inputs);
  std::unique_ptr<FunctionState> state_;
};

// Calls forward, and records the call if an input requires a gradient. Throws Error (invalid) for undefined tensors, and if
// the object served another call. A pass throws Error (invalid) for gradients that do not fit the inputs.
PLUGRAD_API std::vector<Tensor> apply_function(std::shared_ptr<Function> function, const std::vector<Tensor>& inputs);
// Calls a new F, made from the arguments.
template <class F, class... Arguments>
std::vector<Tensor> apply_function(const std::vector<Tensor>& inputs, Arguments&&... arguments) {
  return apply_function(std::make_shared<F>(std::forward<Arguments>(arguments)...), inputs);
}

}  // namespace plugrad
