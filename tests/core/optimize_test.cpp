// Searches from C++; python/tests/test_optimize.py compares them with SciPy's.
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/optimize/least_squares.hpp>
#include <plugrad/optimize/minimize.hpp>
#include <plugrad/runtime/error.hpp>
#include <tests/error_message.hpp>

#include <gtest/gtest.h>
#include <cmath>
#include <stdexcept>

namespace plugrad {
namespace {

using optimize::LeastSquaresMethod;
using optimize::Method;

Tensor vector(const std::vector<double>& elements) {
  return Tensor::from(elements, {static_cast<int64_t>(elements.size())});
}

Tensor residuals(const Tensor& x) {
  const Tensor a = narrow(x, 0, 0, x.count() - 1), b = narrow(x, 0, 1, x.count() - 1);
  return cat({10 * (b - a * a), 1 - a});
}
Tensor rosenbrock(const Tensor& x) {
  const Tensor f = residuals(x);
  return sum(f * f);
}

bool factors() {
  try {
    (void)optimize::least_squares(optimize::residuals(residuals), vector({0, 0}));
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported) << error.what();
    return false;
  }
}

void expect_near(const Tensor& x, const std::vector<double>& wanted, double tolerance) {
  const std::vector<double> found = x.to_vector<double>();
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance) << i;
}

TEST(Minimize, FindsTheMinimumOfRosenbrocksFunction) {
  for (const Method method : {Method::automatic, Method::bfgs, Method::lbfgsb, Method::trust_ncg, Method::trust_exact}) {
    if (method == Method::trust_exact && !factors()) continue;
    const auto result = optimize::minimize(optimize::objective(rosenbrock), vector({-1.2, 1, 0.5}), {.method = method});
    EXPECT_TRUE(result.success) << result.message;
    expect_near(result.x, {1, 1, 1}, 1e-4);
    EXPECT_NEAR(result.fun, rosenbrock(result.x).item<double>(), 1e-15);
    EXPECT_FALSE(result.x.requires_grad());
  }
}

TEST(Minimize, StaysWithinBounds) {
  const auto f = [](const Tensor& x) {
    for (const double each : x.to_vector<double>()) EXPECT_LE(each, 0.5);
    return rosenbrock(x);
  };
  const optimize::MinimizeOptions options{.bounds = {.lower = {}, .upper = full({}, 0.5, DType::f64)}};
  const auto result = optimize::minimize(optimize::objective(rosenbrock), vector({-1.2, 0}), options);
  expect_near(result.x, {0.5, 0.25}, 1e-5);
  const optimize::Objective watched{[&](const Tensor& x) {
    (void)f(x);
    return optimize::objective(rosenbrock).value_and_gradient(x);
  }};
  EXPECT_EQ(optimize::minimize(watched, vector({-1.2, 0}), options).nfev, result.nfev);
}

TEST(LeastSquares, FindsTheMinimumOfRosenbrocksFunction) {
  if (!factors()) GTEST_SKIP() << "no device factors matrices";
  for (const auto method : {LeastSquaresMethod::lm, LeastSquaresMethod::trf}) {
    int iterations = 0;
    optimize::LeastSquaresOptions options{.method = method};
    options.callback = [&](const Tensor&, double) { return ++iterations > 1000; };
    const auto result = optimize::least_squares(optimize::residuals(residuals), vector({-1.2, 1}), options);
    EXPECT_TRUE(result.success) << result.message;
    expect_near(result.x, {1, 1}, 1e-8);
    EXPECT_EQ(result.nfev, method == LeastSquaresMethod::lm ? 21 : 25);  // SciPy 1.17
    EXPECT_GT(iterations, 10);
    EXPECT_EQ(result.jac.shape(), (Shape{2, 2}));
  }
}

TEST(Optimize, RefusesWhatMakesNoSense) {
  const auto f = optimize::objective(rosenbrock);
  const auto refuses = [](const auto& call, const char* part) {
    const std::string message = test::message_of(call);
    EXPECT_TRUE(test::contains(message, part)) << message;
  };
  refuses([&] { (void)optimize::minimize(f, Tensor()); }, "x0 is undefined");
  refuses([&] { (void)optimize::minimize({}, vector({0, 0})); }, "value_and_gradient");
  refuses([&] { (void)optimize::minimize(f, ones({2}, DType::i64)); }, "expected a floating tensor");
  refuses([&] { (void)optimize::minimize(f, vector({0, 0}), {.maxls = 0}); }, "maxls");
  const optimize::Objective first_order{f.value_and_gradient};
  refuses([&] { (void)optimize::minimize(first_order, vector({0, 0}), {.method = Method::trust_ncg}); },
          "Hessian's product");
  const optimize::Objective failing{[](const Tensor&) -> optimize::ValueAndGradient { throw std::runtime_error("none"); }};
  EXPECT_THROW((void)optimize::minimize(failing, vector({0, 0})), std::runtime_error);
}

}  // namespace
}  // namespace plugrad
