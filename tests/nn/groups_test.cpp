// Groups of parameters and their options.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

namespace plugrad {
namespace {

using test::throws;

Tensor leaf(double value) { return full({2}, value, DType::f64).requires_grad_(); }

TEST(Groups, StepByTheirOwnOptions) {
  Tensor a = leaf(1), b = leaf(1);
  nn::SGD optimizer(std::vector<nn::ParameterGroup>{{{a}}, {{b}, {{"lr", 0.5}, {"weight_decay", 2}}}}, 0.25);
  EXPECT_EQ(optimizer.groups(), 2u);
  for (Tensor* each : {&a, &b}) each->set_grad(full({2}, 1, DType::f64));
  optimizer.step();
  EXPECT_EQ(a.to_vector<double>()[0], 0.75);
  EXPECT_EQ(b.to_vector<double>()[0], 1 - 0.5 * 3);
  optimizer.set_option("lr", 0, 1);
  EXPECT_EQ(optimizer.option("lr", 1), 0);
  EXPECT_EQ(optimizer.rate(), 0.25);
  optimizer.set_rate(0.125);
  EXPECT_EQ(optimizer.option("lr", 1), 0.125);
  optimizer.zero_grad();
  EXPECT_FALSE(a.grad().defined() || b.grad().defined());
}

TEST(Groups, AreAddedWithTheirState) {
  Tensor a = leaf(1), b = leaf(1);
  nn::Adam optimizer({a}, 0.5);
  a.set_grad(full({2}, 1, DType::f64));
  optimizer.step();
  optimizer.add_param_group({{b}, {{"beta1", 0.5}}});
  EXPECT_EQ(optimizer.state().size(), 6u);
  b.set_grad(full({2}, 1, DType::f64));
  optimizer.step();
  EXPECT_NEAR(b.to_vector<double>()[0], 0.5, 1e-7);
  EXPECT_EQ(optimizer.state()[5].tensor.item<int64_t>(), 1);
  // If the momentum is set later, the next step makes its buffer.
  nn::SGD later({a}, 0.5);
  later.set_option("momentum", 0.5);
  later.step();
  EXPECT_EQ(later.state().size(), 1u);
}

TEST(Groups, RefuseWhatMakesNoSense) {
  Tensor a = leaf(1), b = leaf(1);
  nn::Adam optimizer({a}, 0.5);
  EXPECT_TRUE(throws(Code::invalid, {"[adam] there is no option 'momentum'", "lr, beta1"},
                     [&] { optimizer.set_option("momentum", 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[adam] beta1 is 1", "below 1"}, [&] { optimizer.set_option("beta1", 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"another group"}, [&] { optimizer.add_param_group({{b, a}}); }));
  EXPECT_TRUE(throws(Code::invalid, {"lr is -1"}, [&] { optimizer.add_param_group({{b}, {{"lr", -1}}}); }));
  EXPECT_TRUE(throws(Code::invalid, {"requires no gradient"}, [&] { optimizer.add_param_group({{b.detach()}}); }));
  EXPECT_EQ(optimizer.groups(), 1u);
  EXPECT_EQ(optimizer.state().size(), 3u);
}

}  // namespace
}  // namespace plugrad
