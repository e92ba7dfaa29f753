#include <plugrad/optimize/minimize.hpp>

#include <core/optimize/descent.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/func/jvp.hpp>
#include <plugrad/func/vjp.hpp>
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

ValueAndGradient value_and_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const EnableGrad recorded;
  const func::Vjp made = func::vjp([&](const func::Tensors& given) { return func::Tensors{f(given[0])}; }, {x});
  const Tensor& value = made.results[0];
  if (value.count() != 1)
    throw Error(Code::invalid,
                "[minimize] the function returned a tensor of shape " + value.shape().text() + ": expected one element");
  const Tensor gradient = made.pullback({ones_like(value)})[0];
  return {value, gradient.defined() ? gradient : zeros_like(x)};
}

// By forward mode over the gradient.
Tensor hessian_product(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v) {
  const auto gradient = [&](const func::Tensors& given) { return func::Tensors{value_and_gradient(f, given[0]).gradient}; };
  return func::jvp(gradient, {x}, {v}).tangents[0];
}

void check(const Places& places, const MinimizeOptions& options) {
  const auto require = [&](bool holds, const char* text) {
    if (!holds) places.refuse(text);
  };
  require(!options.gtol || *options.gtol >= 0, "gtol must be at least 0");
  require(options.ftol >= 0 && options.xrtol >= 0, "ftol and xrtol must be at least 0");
  require(options.maxcor >= 1 && options.maxls >= 1, "maxcor and maxls must be at least 1");
  require(options.maxfun >= 1 && options.maxiter.value_or(0) >= 0, "maxfun must be at least 1, and maxiter at least 0");
  require(options.initial_trust_radius > 0 && options.initial_trust_radius < options.max_trust_radius,
          "initial_trust_radius must be above 0 and below max_trust_radius");
  require(options.eta >= 0 && options.eta < 0.25, "eta must be at least 0 and below 0.25");
}
}  // namespace

Objective objective(std::function<Tensor(const Tensor& x)> f) {
  const auto shared = std::make_shared<std::function<Tensor(const Tensor&)>>(std::move(f));
  const auto product = [shared](const Tensor& x, const Tensor& v) { return hessian_product(*shared, x, v); };
  return {[shared](const Tensor& x) { return value_and_gradient(*shared, x); },
          [product](const Tensor& x) {
            const auto row = [&](const func::Tensors& v) { return func::Tensors{product(x, v[0])}; };
            return reshape(func::vmap(row, {unit_vectors_like(x)})[0], {x.count(), x.count()});
          },
          product};
}

Point Evaluations::at(Vector x) {
  ++values;
  const ValueAndGradient made = objective_.value_and_gradient(places_.tensor_of(x));
  if (!made.value.defined() || made.value.count() != 1)
    places_.refuse("the function returned " +
                   (made.value.defined() ? "a tensor of shape " + made.value.shape().text() : std::string("no value")) +
                   ": expected one element");
  Vector gradient = places_.like_x(made.gradient, "the gradient");
  return {std::move(x), made.value.item<double>(), std::move(gradient)};
}

Matrix Evaluations::hessian(const Vector& x) {
  ++hessians;
  const size_t n = places_.count();
  const Tensor made = objective_.hessian(places_.tensor_of(x));
  if (!made.defined() || made.count() != static_cast<int64_t>(n * n))
    places_.refuse("the Hessian has " + (made.defined() ? "the shape " + made.shape().text() : "no elements") +
                   ": expected " + std::to_string(n) + " rows and columns");
  return {n, n, elements_of(made)};
}

Vector Evaluations::hessian_product(const Vector& x, const Vector& v) {
  ++hessians;
  return places_.like_x(objective_.hessian_product(places_.tensor_of(x), places_.tensor_of(v)), "the Hessian's product");
}

bool Course::count(const Evaluations& evaluations, const MinimizeOptions& options, int64_t maxiter) {
  ++iterations;
  if (options.callback && options.callback(evaluations.places().tensor_of(now.x), now.value))
    return end(99, "STOP: the callback ended the search");
  if (iterations >= maxiter) return end(1, "STOP: the limit on iterations (maxiter) is reached");
  return false;
}

MinimizeResult minimize(const Objective& objective, const Tensor& x0, const MinimizeOptions& options) {
  const NoGrad unrecorded;
  Evaluations evaluations(objective, x0);
  const Places& places = evaluations.places();
  check(places, options);
  const Box box(places, options.bounds);
  Method method = options.method;
  if (method == Method::automatic) method = box.is_open() ? Method::bfgs : Method::lbfgsb;
  if (!objective.value_and_gradient) places.refuse("the objective has no value_and_gradient");
  if (method != Method::lbfgsb && !box.is_open()) places.refuse("this method takes no bounds: use L-BFGS-B");
  if (method == Method::trust_exact && !objective.hessian) places.refuse("trust-exact needs the Hessian");
  if (method == Method::trust_ncg && !objective.hessian_product) places.refuse("trust-ncg needs the Hessian's product");
  Vector start = elements_of(x0);
  for (size_t i = 0; i < start.size(); ++i) start[i] = std::clamp(start[i], box.lower[i], box.upper[i]);
  Course course{evaluations.at(std::move(start))};
  if (!std::isfinite(course.now.value) || !all_finite(course.now.gradient))
    places.refuse("the value or the gradient at x0 is not finite: start elsewhere");
  if (method == Method::bfgs) bfgs(evaluations, course, options);
  else if (method == Method::lbfgsb) lbfgsb(evaluations, course, box, options);
  else trust_region(evaluations, course, options, method == Method::trust_exact);
  const bool success = course.status == 0;
  return {places.tensor_of(course.now.x),
          course.now.value,
          places.tensor_of(course.now.gradient),
          evaluations.values,
          evaluations.values,
          evaluations.hessians,
          course.iterations,
          success,
          course.status,
          course.message};
}

}  // namespace plugrad::optimize
