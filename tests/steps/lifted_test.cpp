// Numbers that a step takes anew in each replay.
#include <tests/steps/twins.hpp>

#include <cmath>
#include <functional>

namespace plugrad::test {
namespace {

using Body = std::function<Tensors(const Tensor& x, Number a, Number b)>;

// Calls a step as a language binding does: plain numbers for a start, then lifted ones.
class Lifting {
 public:
  explicit Lifting(Body body, CompileOptions options = {.fusion_elements = 1})
      : body_(std::move(body)), step_(std::move(options)) {}

  Tensors operator()(const Tensor& x, double a, double b) {
    const bool lifted = ++calls_ > 2;
    const auto run = [&](const Tensors& given) {
      if (!lifted) return StepResults{body_(given[0], a, b)};
      begin_lifting();
      Tensors made = body_(given[0], Number::lifted(a, 1), Number::lifted(b, 2));
      alone_ = end_lifting();
      if (!alone_) note_unrepeatable("it looks at a number");
      return StepResults{std::move(made), 7};
    };
    const auto numbers = [&](uint64_t form) {
      EXPECT_EQ(form, 7u);
      return std::vector<double>{a, b};
    };
    if (!lifted) return step_.call({x}, std::to_string(a) + std::to_string(b), run).tensors;
    const Tensors results = step_.call({x}, "lifted", run, numbers).tensors;
    kept_ = step_.knows({x}, "lifted");
    return results;
  }

  bool alone() const { return alone_; }
  bool kept() const { return kept_; }
  const CompiledStep& step() const { return step_; }

 private:
  Body body_;
  CompiledStep step_;
  int calls_ = 0;
  bool alone_ = false, kept_ = false;
};

constexpr double kNumbers[][2] = {{2, 3}, {0.5, -1}, {0.25, 0.1}, {7, -0.0}, {-1.5, 1e-3}, {0.1, 1e30}};

// With a gradient for x.
Tensors with_gradient(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  Tensor leaf = clone(x.detach()).requires_grad_();
  const Tensor y = f(leaf);
  sum(y * y).backward();
  return {y.detach(), leaf.grad()};
}

const std::pair<const char*, Body> kBodies[] = {
    {"products and sums",
     [](const Tensor& x, Number a, Number b) {
       return with_gradient(x, [&](const Tensor& y) { return mul(add(y, a), b) - div(sub(a, y), 3); });
     }},
    {"quotients", [](const Tensor& x, Number a,
                     Number b) { return with_gradient(x, [&](const Tensor& y) { return div(y, a) + div(b, y + 10); }); }},
    {"extremes", [](const Tensor& x, Number a,
                    Number b) { return with_gradient(x, [&](const Tensor& y) { return maximum(minimum(y, a), b); }); }},
    {"comparisons", [](const Tensor& x, Number a, Number b) { return Tensors{gt(x, a), where(lt(x, b), x, a)}; }},
    {"in place",
     [](const Tensor& x, Number a, Number b) {
       Tensor y = clone(x);
       y.mul_(a);
       y.fill_(b);
       return Tensors{y, full_like(x, a)};
     }},
    {"unused", [](const Tensor& x, Number, Number) { return Tensors{x + 1}; }},
};

TEST(LiftedNumbers, HaveTheBitsOfPlainNumbers) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const auto& [name, body] : kBodies) {
      SCOPED_TRACE(std::string(name) + " " + dtype_name(dtype));
      Lifting step(body);
      const Tensor x = of(dtype, spread(5000, -2, 2, 0.3), {5000});
      for (const auto& [a, b] : kNumbers) EXPECT_TRUE(same_bytes(step(x, a, b), body(x, a, b))) << a << " " << b;
      EXPECT_TRUE(step.kept());
      EXPECT_EQ(step.step().figures().recorded, 3u);
      EXPECT_EQ(step.step().figures().replayed, 3u);
    }
}

TEST(LiftedNumbers, AreNoConstantsOfAStep) {
  // A tensor of numbers alone is made in each replay.
  const Body body = [](const Tensor& x, Number a, Number b) { return Tensors{x + full({4}, a, x.dtype(), x.device()) * b}; };
  Lifting step(body);
  for (const auto& [a, b] : kNumbers) EXPECT_TRUE(same_bytes(step(ones({4}), a, b), body(ones({4}), a, b)));
  EXPECT_TRUE(step.kept());
}

TEST(LiftedNumbers, ThatCodeLooksAtAreNotLifted) {
  const std::pair<const char*, Body> bodies[] = {
      {"branch", [](const Tensor& x, Number a, Number) { return Tensors{a.real() > 1 ? x : x + 1}; }},
      {"power",
       [](const Tensor& x, Number a, Number) { return with_gradient(x, [&](const Tensor& y) { return pow(y, a); }); }},
      {"integers", [](const Tensor& x, Number a, Number) { return Tensors{cast(x, DType::i64) * Number(a.integer())}; }},
  };
  for (const auto& [name, body] : bodies) {
    SCOPED_TRACE(name);
    Lifting step(body);
    for (const auto& [a, b] : kNumbers) EXPECT_TRUE(same_bytes(step(ones({4}), a, b), body(ones({4}), a, b)));
    EXPECT_FALSE(step.alone());
    EXPECT_FALSE(step.kept());
    EXPECT_EQ(step.step().figures().replayed, 0u);
  }
}

// The function does something else with lifted numbers: its recording would not be the function's.
TEST(LiftedNumbers, NeedTheCallsOfThePlainFunction) {
  Lifting step([](const Tensor& x, Number a, Number) { return Tensors{a.source() ? x + a : x * a}; });
  for (const auto& [a, b] : kNumbers) (void)step(ones({4}), a, b);
  EXPECT_TRUE(step.alone());
  EXPECT_FALSE(step.kept());
  EXPECT_EQ(step.step().figures().replayed, 0u);
}

}  // namespace
}  // namespace plugrad::test
