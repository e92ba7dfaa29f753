// Minimises functions of a tensor, with SciPy's names and stopping rules.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace plugrad::optimize {

// A function of x with its derivatives, in x's shape. The algorithms compute in f64 on the host, but call the functions with
// tensors of x0's shape, dtype and device. f64 is advisable: most defaults of tolerances lie below f32's resolution.
struct ValueAndGradient {
  Tensor value;     // one element
  Tensor gradient;  // in x's shape
};
struct Objective {
  std::function<ValueAndGradient(const Tensor& x)> value_and_gradient;
  // The second derivatives (n, n), for trust_exact, or their product with v, for trust_ncg. n = x.count().
  std::function<Tensor(const Tensor& x)> hessian = {};
  std::function<Tensor(const Tensor& x, const Tensor& v)> hessian_product = {};
};
// f returns a tensor of one element. Its derivatives come from autograd.
PLUGRAD_API Objective objective(std::function<Tensor(const Tensor& x)> f);

enum class Method { automatic, bfgs, lbfgsb, trust_ncg, trust_exact };

// lower <= x <= upper, in x's shape or as tensors of one element; undefined: no bound. Elements may be infinite.
struct Bounds {
  Tensor lower, upper;
};

struct MinimizeOptions {
  // automatic: lbfgsb with bounds, else bfgs. Other methods refuse bounds.
  Method method = Method::automatic;
  Bounds bounds = {};
  // Ends where the largest element of the (projected) gradient is at most gtol; for trust_ncg and trust_exact, where its
  // Euclidean norm is below gtol. Defaults: 1e-5, and 1e-4 for trust_ncg and trust_exact.
  std::optional<double> gtol = std::nullopt;
  double ftol = 2.220446049250313e-9;             // lbfgsb ends where the value falls by at most ftol times max(|value|, 1)
  double xrtol = 0;                               // bfgs ends where the step's norm is at most xrtol times x's norm
  std::optional<int64_t> maxiter = std::nullopt;  // defaults: 15000 for lbfgsb, else 200 n
  int64_t maxfun = 15000;                         // lbfgsb: of evaluations
  int maxcor = 10;                                // lbfgsb: the moves that estimate the second derivatives
  int maxls = 20;                                 // lbfgsb: evaluations of a line search
  double initial_trust_radius = 1, max_trust_radius = 1000, eta = 0.15;
  // Called after each iteration; true ends the search.
  std::function<bool(const Tensor& x, double value)> callback = {};
};

struct MinimizeResult {
  Tensor x;
  double fun = 0;
  Tensor jac;  // the gradient at x
  int64_t nfev = 0, njev = 0, nhev = 0, nit = 0;
  bool success = false;
  int status = 0;  // 0: converged; 1: a limit on iterations or evaluations; 2: no further progress; 99: callback
  std::string message = {};
};

// Minimises from x0, a floating tensor. Methods: bfgs (Nocedal and Wright, Numerical Optimization, 2006, algorithm 6.1),
// lbfgsb (Byrd, Lu, Nocedal and Zhu, A Limited Memory Algorithm for Bound Constrained Optimization, 1995, with the
// projection of Morales and Nocedal, 2011), both with the line search of More and Thuente, 1994; trust_ncg (Nocedal and
// Wright, algorithms 4.1 and 7.2), and trust_exact, which solves the trust region's problem by eigenvalues (section 4.3). A
// point where the value is not finite counts as too far. Records no graph; an exception of a function passes on. Throws
// Error (invalid) for options out of range, for results of wrong shapes, for missing derivatives, and for a value at x0 that
// is not finite; Error (unsupported) for trust_exact if no device factors matrices.
PLUGRAD_API MinimizeResult minimize(const Objective& objective, const Tensor& x0, const MinimizeOptions& options = {});

}  // namespace plugrad::optimize
