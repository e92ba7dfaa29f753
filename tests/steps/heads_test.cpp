// Fusions that begin with a product, a normalisation or attention have the bits of the calls one by one.
#include <tests/steps/fused.hpp>

namespace plugrad::test {
namespace {

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Whether the device's fusions begin with products.
bool runs_heads() {
  const Function f = [](const Tensors& x) -> Tensors { return {relu(matmul(x[0], x[1]))}; };
  return says(explained(f, two({70, 3}, {3, 70})), "fusion of matmul and relu over 70 x 70");
}

class Heads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runs_heads()) GTEST_SKIP() << "no fusion of " << default_device().name() << " begins with a product";
  }
};

TEST_F(Heads, ProductsOfManySizes) {
  const Function f = [](const Tensors& x) -> Tensors {
    const Tensor y = matmul(x[0], x[1]), z = gelu(y + slice(x[1], 0, 0, 1));
    return {z, tanh(z * 0.5) + y};
  };
  for (const int64_t m : {1, 3, 40, 200})
    for (const int64_t k : {1, 5, 300, 1100})
      for (const int64_t n : {1, 2, 17, 64, 130, 1100}) expect_equal(f, [&] { return two({m, k}, {k, n}); });
  expect_equal(f, [] { return two({3, 5000}, {5000, 64}); });  // a device may decline sums of this length
}

// The product of the tested form is not stored; its memory has to be found elsewhere.
TEST_F(Heads, ProductsThatNothingKeeps) {
  const Function f = [](const Tensors& x) -> Tensors { return {relu(matmul(x[0], x[1])) * 2}; };
  const Function compared = [](const Tensors& x) -> Tensors { return {gt(matmul(x[0], x[1]), 0.1)}; };
  for (const Function& each : {f, compared})
    for (const int64_t n : {30, 100, 3000}) expect_equal(each, [&] { return two({90, 70}, {70, n}); });
}

TEST_F(Heads, ProductsOfViews) {
  const Function turned = [](const Tensors& x) -> Tensors {
    return {relu(matmul(transpose(x[0]), transpose(x[1])) - 0.5), abs(matmul(x[1], x[0]) * 2)};
  };
  for (const int64_t n : {4, 90, 300}) expect_equal(turned, [&] { return two({n, 70}, {130, n}); });
  const Function sliced = [](const Tensors& x) -> Tensors {
    return {relu(matmul(slice(x[0], 1, 3, 60), slice(x[1], 0, 1, 58))) + 1};
  };
  expect_equal(sliced, [] { return two({80, 64}, {60, 128}); });
}

TEST_F(Heads, ProductsOfBatches) {
  const Function f = [](const Tensors& x) -> Tensors { return {silu(matmul(x[0], x[1]) * 3)}; };
  expect_equal(f, [] { return two({5, 40, 30}, {5, 30, 70}); });
  expect_equal(f, [] { return two({2, 3, 40, 30}, {30, 70}); });
  expect_equal(f, [] { return two({40, 30}, {6, 30, 70}); });
  const Function biased = [](const Tensors& x) -> Tensors {
    const Tensor y = matmul(x[0], x[1]);
    return {silu(y + slice(y, 0, 0, 1).detach()), relu(y * slice(x[0], 2, 0, 1))};
  };
  expect_equal(biased, [] { return two({4, 70, 30}, {4, 30, 70}); });
}

TEST_F(Heads, ResidualsAndOperandsThatAreReadTwice) {
  const Function f = [](const Tensors& x) -> Tensors {
    const Tensor y = linear(x[0], x[1], reshape(slice(x[0], 0, 0, 1), {-1}));
    return {x[0] + gelu(y), x[1] * y};
  };
  for (const int64_t n : {6, 64, 150}) expect_equal(f, [&] { return two({n, n}, {n, n}); });
}

TEST_F(Heads, OperandsThatAreOverwritten) {
  const Function f = [](const Tensors& x) -> Tensors {
    const NoGrad unrecorded;
    Tensor a = x[0], b = x[1];
    const Tensor before = matmul(a, b);
    a.add_(before);
    Tensor c = matmul(a, b);
    c.mul_(0.1);
    c.add_(a);
    b.copy_(c - b);
    return {before * 2, c};
  };
  for (const int64_t n : {5, 64, 150}) expect_equal(f, [&] { return two({n, n}, {n, n}); });
}

TEST_F(Heads, OtherDtypes) {
  for (const DType dtype : {DType::f64, DType::bf16, DType::f16}) {
    const Function f = [dtype](const Tensors& x) -> Tensors {
      const Tensor y = matmul(cast(x[0], dtype), cast(x[1], dtype));
      return {relu(y + 1), cast(y, DType::f32) * 2};
    };
    for (const int64_t m : {1, 90}) expect_equal(f, [&] { return two({m, 70}, {70, 130}); });
  }
}

TEST_F(Heads, NormalisationsAndAttention) {
  const Function f = [](const Tensors& x) -> Tensors {
    const Tensor weight = reshape(slice(x[1], 0, 0, 1), {-1});
    return {relu(layer_norm(x[0], {x[0].size(-1)}, weight, weight)), rms_norm(x[0], {x[0].size(-1)}, weight) * x[1],
            softmax(x[0], -1) + x[1], tanh(log_softmax(x[0], 0))};
  };
  for (const int64_t n : {3, 64, 150}) expect_equal(f, [&] { return two({40, n}, {40, n}); });
  const Function attention = [](const Tensors& x) -> Tensors {
    return {scaled_dot_product_attention(x[0], x[1], x[1]) * x[0] + 1};
  };
  expect_equal(attention, [] { return two({2, 3, 16, 8}, {2, 3, 16, 8}); });
}

TEST_F(Heads, Gradients) {
  const auto train = [](bool compiled) {
    manual_seed(7);
    nn::Sequential net{nn::Linear(20, 90), nn::GELU(), nn::Linear(90, 70), nn::ReLU(), nn::Linear(70, 3)};
    nn::Adam optimizer(net.parameters(), 0.01);
    Twin step(compiled, [&](const Tensor& x, const Tensor& y) {
      optimizer.zero_grad();
      Tensor loss = cross_entropy(net(x), y);
      loss.backward();
      optimizer.step();
      return loss;
    });
    Tensors all;
    for (int i = 0; i < 4; ++i) all.push_back(copy_of(step(rand({50, 20}), labels(50))));
    for (const Tensor& each : net.parameters()) all.push_back(each);
    return all;
  };
  EXPECT_TRUE(same_bytes(train(true), train(false)));
}

// Also on a device that takes only the first instructions.
TEST_F(Heads, EndWhereTheDeviceSays) {
  const Device before = default_device();
  if (!before.name().starts_with("sim")) GTEST_SKIP() << "only sim has an option for it";
  set_device_options("sim:1", {{"reach", "2"}});
  set_default_device(Device("sim:1"));
  const Function f = [](const Tensors& x) -> Tensors { return {tanh(gelu(matmul(x[0], x[1]) + slice(x[1], 0, 0, 1)) * 2)}; };
  expect_equal(f, [] { return two({40, 30}, {30, 70}); });
  const std::string text = explained(f, two({40, 30}, {30, 70}));
  for (const char* part : {"fusion of matmul and add over 40 x 70", "fusion of gelu, mul and tanh over 40 x 70"})
    EXPECT_TRUE(says(text, part)) << text;
  set_default_device(before);
}

TEST_F(Heads, SayWhatTheyAre) {
  const Function f = [](const Tensors& x) -> Tensors { return {gelu(matmul(x[0], x[1]) + slice(x[1], 0, 0, 1))}; };
  const std::string text = explained(f, two({40, 30}, {30, 70}));
  EXPECT_TRUE(says(text, "fusion of matmul, add and gelu over 40 x 70")) << text;
}

}  // namespace
}  // namespace plugrad::test
