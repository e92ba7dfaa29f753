// The optimiser L-BFGS, whose step calls a closure several times.
#pragma once
#include <plugrad/nn/optimizer.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace plugrad::nn {

struct LBFGSOptions {
  int max_iter = 20;                           // the most moves of a step
  std::optional<int> max_eval = std::nullopt;  // the most evaluations of a step; by default 1.25 max_iter
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  int history_size = 100;  // the moves that estimate the second derivatives
  bool strong_wolfe = false;
  bool maximize = false;
};

// The quasi-Newton method of Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4, with the moves of
// torch.optim.LBFGS. Without strong_wolfe a move has the length lr; with it, a line search finds a length that satisfies the
// strong Wolfe conditions (algorithms 3.5 and 3.6), and begins with lr. A step ends early where the largest element of the
// gradient is at most tolerance_grad, where the loss changes by less than tolerance_change, where no parameter changes by
// more than tolerance_change, or where the loss falls along the direction by less than tolerance_change per unit of length.
// Options: lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size, strong_wolfe and maximize (0 or 1).
// All parameters form one group, of one dtype, on one device. A parameter that is frozen between steps still moves by the
// earlier moves, as in PyTorch. Compiled steps refuse it: the host reads the losses.
class PLUGRAD_API LBFGS final : public Optimizer {
 public:
  // Clears the gradients, computes the loss, a tensor of one element, and calls backward().
  using Closure = std::function<Tensor()>;

  // Throws Error (invalid) for several groups, dtypes or devices, for an lr of 0, and for numbers below 1 of moves or
  // evaluations.
  LBFGS(ParameterGroups parameters, double lr = 1, LBFGSOptions options = {});
  ~LBFGS() override;
  // Makes up to max_iter moves; returns the loss before the first one. Calls the closure outside NoGrad. If it throws, the
  // parameters stay where it was called, and the exception passes on.
  Tensor step(const Closure& closure);
  [[noreturn]] void step() override;  // throws Error (invalid): a closure is needed
  int64_t evaluations() const;        // of all steps

  // In the form of PyTorch's state, whose slots belong to the first parameter: "d.0", "old_dirs.0.3".
  std::vector<NamedTensor> state() const override;
  void load_state(const std::vector<NamedTensor>& state, int64_t steps) override;

 private:
  class Step;
  struct History;
  void update(const Update&, Updates&) override {}
  void check(std::span<const double> options, const std::vector<Tensor>& parameters) const override;
  std::unique_ptr<History> history_;
};

}  // namespace plugrad::nn
