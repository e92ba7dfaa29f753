#include <plugrad/optimize/least_squares.hpp>

#include <core/optimize/reflective_step.hpp>
#include <core/optimize/residual_evaluations.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/func/jvp.hpp>
#include <plugrad/func/vjp.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace plugrad::optimize {
namespace {

Tensor jacobian_of(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const func::Function function = [&](const func::Tensors& given) { return func::Tensors{f(given[0])}; };
  Tensor value;
  {
    const NoGrad unrecorded;
    value = f(x);
  }
  if (value.count() < x.count()) {
    const EnableGrad recorded;
    const func::Vjp made = func::vjp(function, {x});
    const auto row = [&](const func::Tensors& seeds) {
      const Tensor grad = made.pullback(seeds)[0];
      return func::Tensors{grad.defined() ? grad : zeros_like(x)};
    };
    return reshape(func::vmap(row, {unit_vectors_like(value)})[0], {value.count(), x.count()});
  }
  const auto column = [&](const func::Tensors& v) { return func::jvp(function, {x}, v).tangents; };
  return transpose(reshape(func::vmap(column, {unit_vectors_like(x)})[0], {x.count(), value.count()}));
}

const char* message_of(int status) {
  switch (status) {
    case 0: return "The limit on evaluations (max_nfev) is reached.";
    case 1: return "`gtol` termination condition is satisfied.";
    case 2: return "`ftol` termination condition is satisfied.";
    case 3: return "`xtol` termination condition is satisfied.";
    case 4: return "Both `ftol` and `xtol` termination conditions are satisfied.";
    default: return "The callback ended the search.";
  }
}

void check(const Places& places, const LeastSquaresOptions& options, const Box& box) {
  const auto require = [&](bool holds, const char* text) {
    if (!holds) places.refuse(text);
  };
  require(options.ftol >= 0 && options.xtol >= 0 && options.gtol >= 0, "ftol, xtol and gtol must be at least 0");
  require(options.f_scale > 0 && std::isfinite(options.f_scale), "f_scale must be above 0");
  require(options.max_nfev.value_or(1) >= 1, "max_nfev must be at least 1");
  require(!options.x_scale.defined() || !options.x_scale_by_jacobian, "give x_scale, or x_scale_by_jacobian, not both");
  for (const double each : places.spread(options.x_scale, "x_scale", 1))
    require(each > 0 && std::isfinite(each), "each x_scale must be above 0");
  if (options.method == LeastSquaresMethod::trf) return;
  require(box.is_open(), "the method lm takes no bounds: use trf");
  require(options.loss == Loss::linear, "the method lm takes the linear loss only: use trf");
}
}  // namespace

Residuals residuals(std::function<Tensor(const Tensor& x)> f) {
  const auto shared = std::make_shared<std::function<Tensor(const Tensor&)>>(std::move(f));
  return {[shared](const Tensor& x) { return (*shared)(x); }, [shared](const Tensor& x) { return jacobian_of(*shared, x); }};
}

Vector ResidualEvaluations::value(const Vector& x) {
  ++values;
  const Tensor made = residuals_.value(places_.tensor_of(x));
  if (!made.defined() || made.count() == 0) places_.refuse("the function returned no residuals");
  const size_t count = static_cast<size_t>(made.count());
  if (count_ != 0 && count != count_)
    places_.refuse("the function returned " + std::to_string(count) + " residuals, before " + std::to_string(count_));
  count_ = count;
  return elements_of(made);
}

Matrix ResidualEvaluations::jacobian(const Vector& x) {
  ++jacobians;
  const Tensor made = residuals_.jacobian(places_.tensor_of(x));
  if (!made.defined() || made.count() != static_cast<int64_t>(count_ * places_.count()))
    places_.refuse("the Jacobian has " + (made.defined() ? "the shape " + made.shape().text() : std::string("no elements")) +
                   ": expected " + std::to_string(count_) + " rows and " + std::to_string(places_.count()) + " columns");
  Matrix matrix(count_, places_.count(), elements_of(made));
  if (!all_finite(matrix.elements)) places_.refuse("the Jacobian has elements that are not finite");
  return matrix;
}

RobustLoss::Rho RobustLoss::rho(double z) const {
  const double t = 1 + z;
  switch (kind_) {
    case Loss::soft_l1: return {2 * (std::sqrt(t) - 1), 1 / std::sqrt(t), -0.5 / (t * std::sqrt(t))};
    case Loss::huber:
      if (z <= 1) return {z, 1, 0};
      return {2 * std::sqrt(z) - 1, 1 / std::sqrt(z), -0.5 / (z * std::sqrt(z))};
    case Loss::cauchy: return {std::log1p(z), 1 / t, -1 / (t * t)};
    case Loss::arctan: return {std::atan(z), 1 / (1 + z * z), -2 * z / ((1 + z * z) * (1 + z * z))};
    default: return {z, 1, 0};
  }
}

double RobustLoss::cost(const Vector& f) const {
  double sum = 0;
  for (const double each : f) sum += rho(each / scale_ * (each / scale_)).value;
  return 0.5 * sum * scale_ * scale_;
}

void RobustLoss::scale(Vector& f, Matrix& jacobian) const {
  if (kind_ == Loss::linear) return;
  for (size_t i = 0; i < f.size(); ++i) {
    const double z = f[i] / scale_ * (f[i] / scale_);
    const Rho at = rho(z);
    const double factor = std::sqrt(std::max(at.first + 2 * at.second * z, kEpsilon));
    f[i] *= at.first / factor;
    for (size_t j = 0; j < jacobian.columns; ++j) jacobian(i, j) *= factor;
  }
}

BoundScaling bound_scaling(const Vector& x, const Vector& gradient, const Box& box) {
  BoundScaling made{Vector(x.size(), 1), Vector(x.size())};
  for (size_t i = 0; i < x.size(); ++i) {
    if (gradient[i] < 0 && std::isfinite(box.upper[i])) {
      made.v[i] = box.upper[i] - x[i];
      made.slopes[i] = -1;
    } else if (gradient[i] > 0 && std::isfinite(box.lower[i])) {
      made.v[i] = x[i] - box.lower[i];
      made.slopes[i] = 1;
    }
  }
  return made;
}

namespace {
// -1 and 1 where x is at a bound, to a relative distance of xtol.
Tensor active_mask(const Places& places, const Vector& x, const Box& box, double xtol) {
  Vector mask(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double below = x[i] - box.lower[i], above = box.upper[i] - x[i];
    const auto margin = [&](double bound) { return xtol * std::max(1.0, std::abs(bound)); };
    if (std::isfinite(box.lower[i]) && below <= std::min(above, margin(box.lower[i]))) mask[i] = -1;
    else if (std::isfinite(box.upper[i]) && above <= std::min(below, margin(box.upper[i]))) mask[i] = 1;
  }
  return cast(places.tensor_of(mask), DType::i64);
}

Descent start_of(ResidualEvaluations& evaluations, const Tensor& x0, const Box& box, const LeastSquaresOptions& options) {
  const Places& places = evaluations.places();
  Descent start;
  start.x = elements_of(x0);
  for (size_t i = 0; i < start.x.size(); ++i)
    if (!(start.x[i] >= box.lower[i] && start.x[i] <= box.upper[i])) places.refuse("x0 is not within the bounds");
  if (!box.is_open()) start.x = inside(std::move(start.x), box, 1e-10);
  start.f = evaluations.value(start.x);
  if (!all_finite(start.f)) places.refuse("the residuals at x0 are not finite: start elsewhere");
  if (options.method == LeastSquaresMethod::lm && start.f.size() < start.x.size())
    places.refuse("the method lm needs at least as many residuals as elements of x: use trf");
  start.cost = RobustLoss(options.loss, options.f_scale).cost(start.f);
  return start;
}

LeastSquaresResult result_of(const ResidualEvaluations& evaluations, const Descent& at, const Tensor& x0, const Box& box,
                             const LeastSquaresOptions& options) {
  const Places& places = evaluations.places();
  const int64_t m = static_cast<int64_t>(at.f.size()), n = static_cast<int64_t>(at.x.size());
  Vector f = at.f;
  Matrix jacobian = at.jacobian;
  RobustLoss(options.loss, options.f_scale).scale(f, jacobian);
  const Vector gradient = transposed_product(jacobian, f);
  const double optimality = largest(times(gradient, bound_scaling(at.x, gradient, box).v));
  const auto in_shape = [&](const Vector& values, const Shape& shape) {
    return cast(to(Tensor::from(values, shape), x0.device()), x0.dtype());
  };
  return {places.tensor_of(at.x),
          at.cost,
          in_shape(at.f, {m}),
          in_shape(jacobian.elements, {m, n}),
          places.tensor_of(gradient),
          optimality,
          active_mask(places, at.x, box, options.xtol),
          evaluations.values,
          evaluations.jacobians,
          at.status > 0,
          at.status,
          message_of(at.status)};
}
}  // namespace

LeastSquaresResult least_squares(const Residuals& residuals, const Tensor& x0, const LeastSquaresOptions& options) {
  const NoGrad unrecorded;
  ResidualEvaluations evaluations(residuals, x0);
  const Places& places = evaluations.places();
  if (!residuals.value || !residuals.jacobian) places.refuse("the residuals need value and jacobian");
  const Box box(places, options.bounds);
  check(places, options, box);
  Descent descent = start_of(evaluations, x0, box, options);
  if (options.method == LeastSquaresMethod::lm) levenberg_marquardt(evaluations, descent, options);
  else trust_region_reflective(evaluations, descent, box, options);
  return result_of(evaluations, descent, x0, box, options);
}

}  // namespace plugrad::optimize
