// Minimises sums of squares, with SciPy's names and stopping rules.
#pragma once
#include <plugrad/optimize/minimize.hpp>

namespace plugrad::optimize {

// Residuals f(x), any tensor of m elements, and their Jacobian (m, n).
struct Residuals {
  std::function<Tensor(const Tensor& x)> value;
  std::function<Tensor(const Tensor& x)> jacobian;
};
// The Jacobian comes from forward mode, or from reverse mode if there are fewer residuals than elements of x.
PLUGRAD_API Residuals residuals(std::function<Tensor(const Tensor& x)> f);

enum class LeastSquaresMethod { trf, lm };
// rho(z) of z = (f_i / f_scale)^2: z; 2 (sqrt(1 + z) - 1); z up to 1, then 2 sqrt(z) - 1; ln(1 + z); arctan(z).
enum class Loss { linear, soft_l1, huber, cauchy, arctan };

struct LeastSquaresOptions {
  LeastSquaresMethod method = LeastSquaresMethod::trf;
  Bounds bounds = {};  // lm refuses bounds
  double ftol = 1e-8, xtol = 1e-8, gtol = 1e-8;
  // The scale of each element of x, in x's shape, or of one element. Undefined: by the columns of the Jacobian for lm, 1 for
  // trf.
  Tensor x_scale = {};
  bool x_scale_by_jacobian = false;  // also for trf
  Loss loss = Loss::linear;          // lm takes linear only
  double f_scale = 1;
  std::optional<int64_t> max_nfev = std::nullopt;  // by default 100 n
  // Called after each iteration; true ends the search.
  std::function<bool(const Tensor& x, double cost)> callback = {};
};

struct LeastSquaresResult {
  Tensor x;
  double cost = 0;  // half the sum of rho
  Tensor fun;       // the residuals (m) at x
  // The Jacobian (m, n) at x, scaled by the loss so that jac^T jac approximates the second derivatives of the cost.
  Tensor jac;
  Tensor grad;            // of the cost, in x's shape
  double optimality = 0;  // the largest element of the gradient, scaled by the distance to the bounds
  Tensor active_mask;     // i64, in x's shape: -1 at a lower bound, 1 at an upper bound, else 0
  int64_t nfev = 0, njev = 0;
  bool success = false;
  int status = 0;  // 0: max_nfev; 1: gtol; 2: ftol; 3: xtol; 4: ftol and xtol; -2: callback
  std::string message = {};
};

// Minimises half the sum of rho(f_i(x)^2) from x0. lm: Levenberg-Marquardt in a scaled trust region (More, The
// Levenberg-Marquardt Algorithm: Implementation and Theory, 1978), with MINPACK's rules; needs m >= n. trf: a trust region
// whose steps are reflected at the bounds (Branch, Coleman and Li, 1999). Both factor the Jacobian in f64 on the host; see
// minimize for dtypes and errors.
PLUGRAD_API LeastSquaresResult least_squares(const Residuals& residuals, const Tensor& x0,
                                             const LeastSquaresOptions& options = {});

}  // namespace plugrad::optimize
