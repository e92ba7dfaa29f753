// Derivatives of functions, and the comparison of gradients with differences.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
using Tensors = std::vector<Tensor>;

// (x y, sum x^2 y) of x (2), y (2)
Tensors two(const Tensors& in) { return {in[0] * in[1], sum(in[0] * in[0] * in[1])}; }
Tensor x() { return f64({2, 3}); }
Tensor y() { return f64({5, 7}); }

TEST(Derivatives, ProductWithAVectorOnTheLeft) {
  const auto [results, products] = vjp(two, {x(), y()}, {f64({1, 10}), f64({100}, {})});
  EXPECT_TRUE(close(results[0], {2}, {10, 21}) && close(results[1], {}, {83}));
  EXPECT_TRUE(close(products[0], {2}, {5 + 100 * 20, 70 + 100 * 42}));
  EXPECT_TRUE(close(products[1], {2}, {2 + 100 * 4, 30 + 100 * 9}));
  EXPECT_FALSE(results[0].requires_grad() || products[0].requires_grad());
}

TEST(Derivatives, ProductWithAVectorOnTheRight) {
  const auto [results, products] = jvp(two, {x(), y()}, {f64({1, 10}), f64({100, 1000})});
  EXPECT_TRUE(close(results[1], {}, {83}));
  EXPECT_TRUE(close(products[0], {2}, {5 + 200, 70 + 3000}));
  EXPECT_TRUE(close(products[1], {}, {20 + 420 + 400 + 9000}));
  EXPECT_FALSE(products[0].requires_grad());
}

TEST(Derivatives, Jacobians) {
  const auto all = jacobian(two, {x(), y()});
  EXPECT_TRUE(close(all[0][0], {2, 2}, {5, 0, 0, 7}));
  EXPECT_TRUE(close(all[0][1], {2, 2}, {2, 0, 0, 3}));
  EXPECT_TRUE(close(all[1][0], {2}, {20, 42}));
  EXPECT_TRUE(close(all[1][1], {2}, {4, 9}));
}

TEST(Derivatives, Hessians) {
  const auto f = [](const Tensors& in) { return Tensors{sum(in[0] * in[0] * in[1]) + sum(in[1])}; };
  const auto all = hessian(f, {x(), y()});
  EXPECT_TRUE(close(all[0][0], {2, 2}, {10, 0, 0, 14}));
  EXPECT_TRUE(close(all[0][1], {2, 2}, {4, 0, 0, 6}));
  EXPECT_TRUE(close(all[1][0], {2, 2}, {4, 0, 0, 6}));
  EXPECT_TRUE(close(all[1][1], {2, 2}, {0, 0, 0, 0}));
}

TEST(Derivatives, OfWhatDoesNotDependOnAnInput) {
  const auto f = [](const Tensors& in) { return Tensors{in[0] * 2, f64({1}), argmax(in[0])}; };
  const Tensors seeds = {f64({1, 1}), f64({1}), i64({0}, {})};
  const auto left = vjp(f, {x(), y()}, seeds).second, right = jvp(f, {x(), y()}, {x(), y()}).second;
  EXPECT_TRUE(close(left[0], {2}, {2, 2}) && close(left[1], {2}, {0, 0}));
  EXPECT_TRUE(close(right[0], {2}, {4, 6}) && close(right[1], {1}, {0}) && close(right[2], {}, {0}));
  const auto all = jacobian(f, {x(), y()});
  EXPECT_TRUE(close(all[0][0], {2, 2}, {2, 0, 0, 2}) && close(all[0][1], {2, 2}, {0, 0, 0, 0}));
  EXPECT_TRUE(close(all[1][0], {1, 2}, {0, 0}));
  const auto flat = hessian([](const Tensors& in) { return Tensors{sum(in[0])}; }, {x()});
  EXPECT_TRUE(close(flat[0][0], {2, 2}, {0, 0, 0, 0}));
}

TEST(Derivatives, OfEmptyTensors) {
  const Tensor none = zeros({0, 2}, DType::f64);
  const auto f = [](const Tensors& in) { return Tensors{in[0] * 2}; };
  EXPECT_TRUE(close(jacobian(f, {none})[0][0], {0, 2, 0, 2}, {}));
  EXPECT_TRUE(close(vjp(f, {none}, {none}).second[0], {0, 2}, {}));
  EXPECT_TRUE(close(jvp(f, {none}, {none}).second[0], {0, 2}, {}));
}

TEST(Derivatives, HaveAGraphWhereAsked) {
  const Tensor a = x().requires_grad_();
  const auto cube = [](const Tensors& in) { return Tensors{sum(in[0] * in[0] * in[0])}; };
  EXPECT_TRUE(close(grad({sum(vjp(cube, {a}, {}, true).second[0])}, {a})[0], {2}, {12, 18}));
  EXPECT_TRUE(close(grad({jvp(cube, {a}, {f64({1, 0})}, true).second[0]}, {a})[0], {2}, {12, 0}));
  EXPECT_TRUE(close(grad({sum(jacobian(cube, {a}, true)[0][0])}, {a})[0], {2}, {12, 18}));
  EXPECT_TRUE(close(grad({sum(hessian(cube, {a}, true)[0][0])}, {a})[0], {2}, {6, 6}));
  EXPECT_FALSE(a.grad().defined());
}

TEST(Derivatives, AreComputedWhereRecordingIsOff) {
  const NoGrad unrecorded;
  EXPECT_TRUE(close(jacobian(two, {x(), y()})[1][1], {2}, {4, 9}));
  EXPECT_FALSE(grad_enabled());
}

TEST(Derivatives, ErrorsSayWhatWasWrong) {
  EXPECT_TRUE(throws(Code::invalid, {"[vjp]", "0 tensors in v", "2 results"}, [] { vjp(two, {x(), y()}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[vjp]", "v[1]", "f64 (2,)", "f64 ()"}, [] { vjp(two, {x(), y()}, {x(), x()}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[jvp]", "1 tensors in v", "2 inputs"}, [] { jvp(two, {x(), y()}, {x()}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[jacobian]", "i64"}, [] { jacobian(two, {i64({1})}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[hessian]", "2 results"}, [] { hessian(two, {x(), y()}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[jacobian]", "more axes"},
                     [] { jacobian([](const Tensors& in) { return in; }, {zeros({1, 1, 1, 1, 1}, DType::f64)}); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[vjp]", "undefined"}, [] { vjp([](const Tensors&) { return Tensors{Tensor()}; }, {x()}); }));
}

// --- Comparison with differences.

// x^2, whose backward function returns `factor` x for element 1.
struct Square : Function {
  explicit Square(double with) : factor(with) {}
  std::string name() const override { return "square"; }
  Tensors forward(const Tensors& in) override {
    save_for_backward(in);
    return {in[0] * in[0]};
  }
  Tensors backward(const Tensors& grads) override { return {grads[0] * saved_tensors()[0] * f64({2, factor}, {1, 2})}; }
  double factor;
};
TensorFunction square(double factor) {
  return [factor](const Tensors& in) { return Tensors{in[0] * 1, apply_function<Square>({in[1]}, factor)[0]}; };
}
Tensor leaf() { return f64({3, 4}, {1, 2}).requires_grad_(); }

TEST(Derivatives, GradcheckAcceptsGradientsThatFit) {
  gradcheck(square(2), {leaf(), leaf()});
  gradgradcheck(square(2), {leaf(), leaf()});
  gradgradcheck(square(2), {leaf(), leaf()}, {f64({1, 2}, {1, 2}), f64({3, 4}, {1, 2})});
  gradcheck([](const Tensors& in) { return Tensors{argmax(in[0]), exp(in[0]) * in[1]}; }, {leaf(), i64({1, 2}, {1, 2})});
  gradcheck([](const Tensors& in) { return Tensors{in[0] * 2}; }, {zeros({0, 2}, DType::f64).requires_grad_()});
  gradcheck([](const Tensors& in) { return Tensors{relu(in[0])}; }, {leaf()});
  gradgradcheck([](const Tensors& in) { return Tensors{relu(in[0]) * in[0]}; }, {leaf()});
  gradcheck([](const Tensors& in) { return Tensors{in[0] * in[0]}; }, {cast(leaf().detach(), DType::f32).requires_grad_()},
            {.eps = 1e-2, .atol = 1e-2});
}

TEST(Derivatives, GradcheckNamesWhatDiffers) {
  EXPECT_TRUE(throws(Code::invalid, {"[gradcheck]", "result 1 at (0, 1)", "input 1 at (0, 1)", "is 12", "differences say 8"},
                     [] { gradcheck(square(3), {leaf(), leaf()}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gradcheck]", "f32", "f64"}, [] {
    gradcheck([](const Tensors& in) { return Tensors{exp(in[0])}; }, {ones({2}, DType::f32).requires_grad_()});
  }));
  EXPECT_TRUE(throws(Code::invalid, {"[gradcheck]", "requires_grad_()"}, [] { gradcheck(two, {x(), y()}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gradcheck]", "eps"}, [] { gradcheck(square(2), {leaf(), leaf()}, {.eps = 0}); }));
}

// A function whose gradient is right, but not part of the graph.
struct CutOff : Function {
  std::string name() const override { return "cut_off"; }
  Tensors forward(const Tensors& in) override {
    save_for_backward(in);
    return {in[0] * in[0]};
  }
  Tensors backward(const Tensors& grads) override { return {grads[0] * saved_tensors()[0].detach() * 2}; }
};

TEST(Derivatives, GradgradcheckNamesWhatDiffers) {
  const TensorFunction f = [](const Tensors& in) { return apply_function<CutOff>(in); };
  gradcheck(f, {leaf()});
  EXPECT_TRUE(throws(Code::invalid, {"[gradgradcheck]", "result 0", "input 0 at (0, 0)", "is 0"},
                     [&] { gradgradcheck(f, {leaf()}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gradgradcheck]", "2 seeds", "1 floating results"},
                     [&] { gradgradcheck(f, {leaf()}, {leaf(), leaf()}); }));
}

}  // namespace
}  // namespace plugrad::test
