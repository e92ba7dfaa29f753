// A convolutional network and a transformer have the same losses on every device as on the reference device.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

namespace plugrad {
namespace {

struct Cnn final : nn::Module {
  void members(nn::Members& all) override { all("layers", layers); }
  Tensor forward(const Tensor& x) const override { return layers(x); }
  nn::Sequential layers{
      nn::Conv2d(1, 4, {3}), nn::BatchNorm2d(4), nn::ReLU(),       nn::Conv2d(4, 6, {3}, {.stride = {2}}), nn::GELU(),
      nn::MaxPool2d({2}),    nn::Flatten(),      nn::Linear(24, 5)};
};

struct Transformer final : nn::Module {
  void members(nn::Members& all) override {
    all("words", words), all("places", places), all("layer", layer), all("norm", norm);
  }
  Tensor forward(const Tensor& ids) const override {
    const Tensor x = words(ids) + slice(places.weight, 0, 0, ids.size(1));
    return linear(norm(layer.encode(x, {.is_causal = true})), words.weight);
  }
  nn::Embedding words{11, 16}, places{8, 16};
  nn::TransformerEncoderLayer layer{16, 4, {.dim_feedforward = 32, .dropout = 0, .batch_first = true, .norm_first = true}};
  nn::LayerNorm norm{{16}};
};

// The losses of steps on a device, from the same parameters and data.
template <class Model> std::vector<double> losses(const Device& device, const Tensor& x, const Tensor& y) {
  const Device before = default_device();
  set_default_device("reference");
  manual_seed(5);
  Model model;
  set_default_device(before);
  model.to(device);
  nn::AdamW optimizer(model.parameters(), 0.01);
  std::vector<double> all;
  for (int i = 0; i < 10; ++i) {
    const Tensor scores = model(to(x, device));
    const Tensor loss = cross_entropy(reshape(scores, {-1, scores.size(-1)}), reshape(to(y, device), {-1}));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    all.push_back(loss.item<double>());
  }
  return all;
}

void expect_close(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-4 * expected[i]) << "step " << i;
  EXPECT_LT(found.back(), found.front());
}

TEST(Models, AConvolutionalNetworkLearnsTheSameOnEveryDevice) {
  manual_seed(1);
  const Tensor x = randn({6, 1, 12, 12}), y = randint(0, 5, {6});
  expect_close(losses<Cnn>(default_device(), x, y), losses<Cnn>("reference", x, y));
}

TEST(Models, ATransformerLearnsTheSameOnEveryDevice) {
  manual_seed(2);
  const Tensor ids = randint(0, 11, {3, 8}), next = randint(0, 11, {3, 8});
  expect_close(losses<Transformer>(default_device(), ids, next), losses<Transformer>("reference", ids, next));
}

}  // namespace
}  // namespace plugrad
