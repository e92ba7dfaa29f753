// Reports of the op that made the first NaN.
#include <tests/core/gradient_rows.hpp>

#include <limits>

namespace plugrad::test {
namespace {
constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor leaf(const std::vector<double>& values) { return f64(values).requires_grad_(); }
AnomalyOptions backward_only() { return {.forward = false}; }

TEST(Anomaly, NamesTheOpWhoseGradientHasTheFirstNaN) {
  const DetectAnomaly detect(backward_only());
  const Tensor x = leaf({0, 1}), w = leaf({1, 2});
  const Tensor loss = sum(exp(sqrt(x * w) * 0));  // sqrt'(0) * 0
  EXPECT_TRUE(throws(Code::invalid, {"[detect_anomaly]", "gradient of sqrt", "operand 0", "operands (2,)"},
                     [&] { loss.backward(); }));
  EXPECT_FALSE(x.grad().defined() || w.grad().defined());
}

TEST(Anomaly, NamesShapesOfGraphsRecordedBefore) {
  const Tensor x = leaf({0, 1, 2}), w = f64({0}, {1});
  const Tensor loss = sum(sqrt(x) * w);
  const DetectAnomaly detect;
  EXPECT_TRUE(throws(Code::invalid, {"gradient of sqrt", "(3,)"}, [&] { loss.backward(); }));
}

TEST(Anomaly, NamesTheOpThatMadeTheFirstNaN) {
  const DetectAnomaly detect;
  const Tensor x = leaf({-1, 4}), w = f64({1, 2, 3}, {3, 1});
  EXPECT_TRUE(throws(Code::invalid, {"[detect_anomaly] sqrt made NaN", "operands (2,)", "forward"}, [&] { sqrt(x) * w; }));
  EXPECT_TRUE(throws(Code::invalid, {"/ made NaN", "operands (2,), (2,)"}, [&] { (x - x) / (x - x); }));
  EXPECT_EQ(thrown([&] { leaf({kNaN}) * 2; }).message, "");  // the operand is NaN already
}

TEST(Anomaly, SeedsHooksAndSumsThatAreNaN) {
  const DetectAnomaly detect(backward_only());
  const Tensor x = leaf({1}), y = x * 2;
  EXPECT_TRUE(throws(Code::invalid, {"result of *", "seed"}, [&] { y.backward(f64({kNaN}), {.retain_graph = true}); }));
  const Tensor z = x * 1, sums = z * kInf + z * -kInf;
  EXPECT_TRUE(throws(Code::invalid, {"result of *", "add up to NaN"}, [&] { sums.backward(); }));
  EXPECT_TRUE(throws(Code::invalid, {"leaf of shape (1,)"}, [&] { (x * kInf + x * -kInf).backward(); }));
  HookHandle handle = y.register_hook([](const Tensor& grad) { return grad * kNaN; });
  EXPECT_TRUE(throws(Code::invalid, {"hook"}, [&] { (y * 3).backward(); }));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Anomaly, SaysWhereAnOpWasRecorded) {
  const DetectAnomaly detect({.forward = false, .where = [] { return std::string("line 7"); }});
  const Tensor loss = sum(sqrt(leaf({0})) * 0);
  EXPECT_TRUE(throws(Code::invalid, {"gradient of sqrt", "line 7"}, [&] { loss.backward(); }));
}

TEST(Anomaly, NestsAndEnds) {
  const Tensor x = leaf({-1});
  {
    const DetectAnomaly outer(backward_only());
    {
      const DetectAnomaly inner;
      EXPECT_TRUE(thrown([&] { sqrt(x); }).any);
    }
    EXPECT_FALSE(thrown([&] { sqrt(x); }).any);
    EXPECT_TRUE(thrown([&] { sqrt(x).backward(); }).any);
  }
  sqrt(x).backward();
  EXPECT_TRUE(close(x.grad(), {1}, {kNaN}));
}

TEST(Anomaly, UserFunctionsAreNamed) {
  struct Odd : Function {
    std::string name() const override { return "odd"; }
    std::vector<Tensor> forward(const std::vector<Tensor>& x) override { return {x[0] * 2}; }
    std::vector<Tensor> backward(const std::vector<Tensor>& grads) override { return {grads[0] * kNaN}; }
  };
  const DetectAnomaly detect;
  const Tensor y = apply_function<Odd>({leaf({1})})[0];
  EXPECT_TRUE(throws(Code::invalid, {"gradient of odd"}, [&] { y.backward(); }));
}

// If the result of an op has no NaN, its intermediate results have no NaN either, forward and backward.
class AnomalyOfOps : public ::testing::TestWithParam<GradientRow> {
 protected:
  void SetUp() override {
    if (!GetParam().falls_back) return;
    if (!has_device("cpu")) GTEST_SKIP() << "no plugin here factors matrices";
    set_fallback(Fallback::allow);
  }
  void TearDown() override { set_fallback(before_); }
  const Fallback before_ = fallback();
};
TEST_P(AnomalyOfOps, FindsNothingInOrdinaryNumbers) {
  const DetectAnomaly detect;
  Inputs x;
  for (const Shape& shape : GetParam().shapes)
    x.push_back(f64(spread(shape.count(), GetParam().low, GetParam().high), shape).requires_grad_());
  const Inputs first = grad({sum(GetParam().apply(x))}, x, {.create_graph = true});
  Tensor total = f64({0}, {});
  for (const Tensor& each : first) total = total + sum(each * each);
  if (total.requires_grad()) grad({total}, x, {.allow_unused = true});
}
std::string row_name(const ::testing::TestParamInfo<GradientRow>& info) {
  std::string name = std::string(info.param.op) + info.param.variant;
  std::erase(name, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Rows, AnomalyOfOps, ::testing::ValuesIn(gradient_rows()), row_name);

}  // namespace
}  // namespace plugrad::test
