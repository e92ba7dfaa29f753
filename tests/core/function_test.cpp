// Functions whose gradient the program defines.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {

Tensor leaf(const std::vector<double>& values) { return f64(values).requires_grad_(); }
using Tensors = std::vector<Tensor>;

struct Cube : Function {
  std::string name() const override { return "cube"; }
  Tensors forward(const Tensors& x) override {
    save_for_backward(x);
    return {x[0] * x[0] * x[0]};
  }
  Tensors backward(const Tensors& grads) override {
    const Tensor x = saved_tensors()[0];
    return {grads[0] * x * x * 3};
  }
};

// Saves its result.
struct Exponential : Function {
  std::string name() const override { return "exponential"; }
  Tensors forward(const Tensors& x) override {
    const Tensor y = exp(x[0]);
    save_for_backward({y});
    return {y};
  }
  Tensors backward(const Tensors& grads) override { return {grads[0] * saved_tensors()[0]}; }
};

// a b and a / b, with the gradients computed from both results.
struct ProductAndQuotient : Function {
  std::string name() const override { return "product_and_quotient"; }
  Tensors forward(const Tensors& x) override {
    const Tensors out = {x[0] * x[1], x[0] / x[1]};
    save_for_backward({x[0], x[1], out[0], out[1]});
    return out;
  }
  Tensors backward(const Tensors& grads) override {
    const Tensors saved = saved_tensors();
    const Tensor &a = saved[0], &b = saved[1], &product = saved[2], &quotient = saved[3];
    return {grads[0] * product / a + grads[1] * quotient / a, grads[0] * product / b - grads[1] * quotient / b};
  }
};

// A function whose two directions the test provides.
struct Any : Function {
  using Direction = std::function<Tensors(Any&, const Tensors&)>;
  Any(Direction forwards, Direction backwards) : forwards_(std::move(forwards)), backwards_(std::move(backwards)) {}
  std::string name() const override { return "any"; }
  Tensors forward(const Tensors& x) override { return forwards_(*this, x); }
  Tensors backward(const Tensors& grads) override { return backwards_(*this, grads); }
  using Function::mark_non_differentiable;
  using Function::needs_input_grad;
  using Function::save_for_backward;
  using Function::saved_tensors;
  using Function::set_materialize_grads;

 private:
  Direction forwards_, backwards_;
};

Tensors same(Any&, const Tensors& x) { return x; }
Tensors doubled(Any&, const Tensors& x) { return {x[0] * 2}; }

TEST(Function, ComputesItsOwnGradient) {
  const Tensor x = leaf({1, 2});
  const Tensor y = apply_function<Cube>({x})[0];
  EXPECT_TRUE(close(y, {2}, {1, 8}));
  EXPECT_EQ(std::string(y.op_name()), "cube");
  sum(y * 2).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {6, 24}));
}

TEST(Function, HasHigherDerivatives) {
  const Tensor x = leaf({2});
  Tensor y = apply_function<Cube>({x})[0];
  for (double expected : {12.0, 12.0, 6.0}) {
    y = grad({y}, {x}, {.create_graph = true})[0];
    EXPECT_TRUE(close(y, {1}, {expected}));
  }
  Tensor e = apply_function<Exponential>({x})[0];
  for (int i = 0; i < 3; ++i) {
    e = grad({e}, {x}, {.create_graph = true})[0];
    EXPECT_TRUE(close(e, {1}, {std::exp(2.0)}, 1e-14));
  }
}

TEST(Function, SeveralResults) {
  const auto second = [](bool own) {
    const Tensor a = leaf({2}), b = leaf({4});
    const Tensors out = own ? apply_function<ProductAndQuotient>({a, b}) : Tensors{a * b, a / b};
    const Tensors first = grad({out[0] * out[1], out[1]}, {a, b}, {.create_graph = true});
    const Tensors more = grad({first[0] * first[1]}, {a, b, out[1]}, {.allow_unused = true});
    return Tensors{first[0], first[1], more[0], more[1]};
  };
  const Tensors expected = second(false), actual = second(true);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(actual[i], {1}, elements(expected[i]), 1e-13)) << i;
}

TEST(Function, AResultThatNothingUsesHasAGradientOfZero) {
  const Tensor a = leaf({2}), b = leaf({4});
  apply_function<ProductAndQuotient>({a, b})[0].backward();
  EXPECT_TRUE(close(a.grad(), {1}, {4}));
  EXPECT_TRUE(close(b.grad(), {1}, {2}));
}

TEST(Function, ResultsHaveHooksAndGradients) {
  const Tensor a = leaf({2}), b = leaf({4});
  Tensors out = apply_function<ProductAndQuotient>({a, b});
  out[0].retain_grad();
  out[0].register_hook([](const Tensor& grad) { return grad * 10; });
  EXPECT_TRUE(close(grad({out[0] + out[1]}, {out[1]}, {.retain_graph = true})[0], {1}, {1}));
  (out[0] + out[1]).backward();
  EXPECT_TRUE(close(out[0].grad(), {1}, {10}));
  EXPECT_TRUE(close(a.grad(), {1}, {10 * 4 + 0.25}));
}

// The second pass reaches the call only through the saved result.
TEST(Function, ASavedResultIsPartOfTheGraph) {
  const Tensor x = leaf({3});
  const auto f = [](Any& self, const Tensors& in) {
    const Tensors out = {in[0] * in[0], in[0] * 2};
    self.save_for_backward({out[1]});
    return out;
  };
  const auto b = [](Any& self, const Tensors& grads) { return Tensors{grads[0] * self.saved_tensors()[0] + grads[1] * 2}; };
  const Tensor y = apply_function<Any>({x}, f, b)[0];
  const Tensor first = grad({y}, {x}, {.create_graph = true})[0];
  EXPECT_TRUE(close(first, {1}, {6}));
  EXPECT_TRUE(close(grad({first}, {x})[0], {1}, {2}));
}

TEST(Function, KnowsWhichInputsNeedAGradient) {
  const Tensor x = leaf({1}), constant = f64({5});
  std::vector<bool> needs;
  const auto f = [&](Any& self, const Tensors& in) {
    needs = {self.needs_input_grad(0), self.needs_input_grad(1), self.needs_input_grad(2)};
    return Tensors{in[0] + in[1]};
  };
  const auto b = [](Any&, const Tensors& grads) { return Tensors{Tensor(), grads[0]}; };
  apply_function<Any>({constant, x}, f, b)[0].backward();
  EXPECT_EQ(needs, (std::vector<bool>{false, true, false}));
  EXPECT_TRUE(close(x.grad(), {1}, {1}));
}

TEST(Function, IsRecordedOnlyWhereNeeded) {
  const auto call = [](const Tensor& x) { return apply_function<Any>({x}, doubled, same)[0]; };
  EXPECT_FALSE(call(f64({1})).requires_grad());
  const Tensor x = leaf({1});
  EXPECT_TRUE(call(x).requires_grad());
  const NoGrad unrecorded;
  EXPECT_FALSE(call(x).requires_grad());
}

TEST(Function, AnInputAsResultIsAnotherTensor) {
  const Tensor x = leaf({1, 2});
  const Tensor y = apply_function<Any>({x}, same, [](Any&, const Tensors& grads) { return Tensors{-grads[0]}; })[0];
  EXPECT_FALSE(y.is_same(x));
  sum(y + x).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {0, 0}));
}

TEST(Function, SomeResultsHaveNoGradient) {
  const Tensor x = leaf({1, 3, 2});
  const auto f = [](Any& self, const Tensors& in) {
    const Tensor rounded = in[0] * 1;
    self.mark_non_differentiable({rounded});
    return Tensors{in[0] * 2, argmax(in[0]), rounded};
  };
  const auto b = [](Any&, const Tensors& grads) {
    EXPECT_TRUE(grads[1].dtype() == DType::i64 && close(grads[2], {3}, {0, 0, 0}));
    return Tensors{grads[0] * 2};
  };
  const Tensors out = apply_function<Any>({x}, f, b);
  EXPECT_TRUE(out[0].requires_grad() && !out[1].requires_grad() && !out[2].requires_grad());
  sum(out[0]).backward();
  EXPECT_TRUE(close(x.grad(), {3}, {2, 2, 2}));
}

TEST(Function, GradientsOfZeroMayBeUndefined) {
  const Tensor x = leaf({1});
  const auto f = [](Any& self, const Tensors& in) {
    self.set_materialize_grads(false);
    return Tensors{in[0] * 2, in[0] * 3};
  };
  const auto b = [](Any&, const Tensors& grads) {
    EXPECT_TRUE(!grads[0].defined() && grads[1].defined());
    return Tensors{grads[1] * 3};
  };
  apply_function<Any>({x}, f, b)[1].backward();
  EXPECT_TRUE(close(x.grad(), {1}, {3}));
}

TEST(Function, GradientsAreSummedAndConverted) {
  const Tensor x = ones({1}, DType::f32).requires_grad_();
  const auto f = [](Any&, const Tensors& in) { return Tensors{cast(expand(in[0], {2, 3}), DType::f64)}; };
  sum(apply_function<Any>({x}, f, same)[0] * 2).backward();
  EXPECT_TRUE(close(x.grad(), {1}, {12}));
  EXPECT_EQ(x.grad().dtype(), DType::f32);
}

TEST(Function, ErrorsNameTheFunction) {
  const Tensor x = leaf({1, 2});
  struct Row {
    std::vector<std::string> parts;
    Any::Direction backward;
  };
  const Row rows[] = {
      {{"[any]", "2 gradients", "1 inputs"}, [](Any&, const Tensors& g) { return Tensors{g[0], g[0]}; }},
      {{"[any]", "0 gradients"}, [](Any&, const Tensors&) { return Tensors{}; }},
      {{"[any]", "(3,)", "f32", "input 0", "(2,)", "f64"}, [](Any&, const Tensors&) { return Tensors{zeros({3})}; }},
      {{"[any]", "()", "(2,)"}, [](Any&, const Tensors&) { return Tensors{f64({1}, {})}; }},
  };
  for (const Row& row : rows) {
    const Tensor y = apply_function<Any>({x}, doubled, row.backward)[0];
    EXPECT_TRUE(throws(Code::invalid, row.parts, [&] { sum(y).backward(); }));
    EXPECT_FALSE(x.grad().defined());
  }
  EXPECT_TRUE(throws(Code::invalid, {"[any]", "nothing"},
                     [&] { apply_function<Any>({x}, [](Any&, const Tensors&) { return Tensors{}; }, same); }));
  EXPECT_TRUE(throws(Code::invalid, {"[any]", "undefined"},
                     [&] { apply_function<Any>({x}, [](Any&, const Tensors&) { return Tensors{Tensor()}; }, same); }));
  EXPECT_TRUE(throws(Code::invalid, {"[any]", "undefined"}, [&] { apply_function<Any>({Tensor()}, doubled, same); }));
  EXPECT_TRUE(throws(Code::invalid, {"[apply_function]", "null"}, [&] { apply_function(nullptr, {x}); }));
  const auto once = std::make_shared<Cube>();
  apply_function(once, {x});
  EXPECT_TRUE(throws(Code::invalid, {"[cube]", "another call"}, [&] { apply_function(once, {x}); }));
}

TEST(Function, AnInputThatForwardWritesIntoIsAnError) {
  const auto f = [](Any&, const Tensors& in) {
    Tensor(in[0]).mul_(2);
    return in;
  };
  EXPECT_TRUE(throws(Code::invalid, {"[any]", "input 0", "clone"}, [&] { apply_function<Any>({leaf({1})}, f, same); }));
}

TEST(Function, ASavedValueThatChangedIsNoticed) {
  const Tensor x = leaf({1, 2});
  for (bool of_result : {false, true}) {
    const Tensor y = of_result ? apply_function<Exponential>({x})[0] : apply_function<Cube>({x})[0];
    {
      const NoGrad unrecorded;
      Tensor(of_result ? y : x).mul_(2);
    }
    EXPECT_TRUE(throws(Code::invalid, {of_result ? "[exponential]" : "[cube]", "changed in place", "clone"},
                       [&] { sum(y).backward(); }));
  }
  EXPECT_FALSE(x.grad().defined());
}

TEST(Function, APassFreesWhatItSaved) {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(apply_function<Cube>({x})[0]);
  y.backward({}, {.retain_graph = true});
  y.backward();
  EXPECT_TRUE(close(x.grad(), {2}, {6, 24}));
  EXPECT_TRUE(throws(Code::invalid, {"freed", "cube", "retain_graph"}, [&] { y.backward(); }));
}

TEST(Function, AnErrorInBackwardEndsThePass) {
  const Tensor x = leaf({1}), w = leaf({2});
  bool fail = true;
  const auto b = [&](Any&, const Tensors& grads) {
    if (fail) throw std::runtime_error("enough");
    return grads;
  };
  const Tensor y = apply_function<Any>({x}, doubled, b)[0] * w;
  EXPECT_EQ(thrown([&] { y.backward({}, {.retain_graph = true}); }).message, "enough");
  EXPECT_FALSE(x.grad().defined() || w.grad().defined());
  fail = false;
  y.backward();
  EXPECT_TRUE(close(w.grad(), {1}, {2}));
}

TEST(Function, IsDrawnAsOneOp) {
  const std::string text = draw_dot(apply_function<Cube>({leaf({1})})[0]);
  EXPECT_NE(text.find("label=\"cube\""), std::string::npos);
}

TEST(Function, KeepsNothingAliveInACycle) {
  const auto expires = [](std::shared_ptr<Function> function, const Tensors& inputs) {
    const std::weak_ptr<Function> watched = function;
    Tensors out = apply_function(std::move(function), inputs);
    EXPECT_FALSE(watched.expired());
    out.clear();
    return watched.expired();
  };
  const Tensor x = leaf({1});
  EXPECT_TRUE(expires(std::make_shared<Exponential>(), {x}));
  EXPECT_TRUE(expires(std::make_shared<ProductAndQuotient>(), {x, x}));
}

}  // namespace
}  // namespace plugrad::test
