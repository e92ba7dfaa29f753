// Compiled training steps of models give the same bits as eager training steps.
#include <tests/steps/twins.hpp>

#include <cstdlib>
#include <functional>
#include <memory>

namespace plugrad::test {
namespace {

constexpr int kWords = 11, kLength = 6, kWidth = 8;

struct Cnn final : nn::Module {
  nn::Conv2d conv{1, 4, {3}};
  nn::BatchNorm2d norm{4};
  nn::Dropout drop{0.25};
  nn::Linear out{4 * 3 * 3, 3};
  void members(nn::Members& all) override { all("conv", conv), all("norm", norm), all("drop", drop), all("out", out); }
  Tensor forward(const Tensor& x) const override { return out(drop(flatten(max_pool2d(relu(norm(conv(x))), {2}), 1))); }
};

struct Block final : nn::Module {
  nn::LayerNorm first{{kWidth}}, second{{kWidth}};
  nn::Linear queries{kWidth, 3 * kWidth}, joined{kWidth, kWidth}, up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};
  void members(nn::Members& all) override {
    all("first", first), all("second", second), all("queries", queries), all("joined", joined), all("up", up);
    all("down", down);
  }
  Tensor forward(const Tensor& x) const override {
    const std::vector<Tensor> parts = chunk(queries(first(x)), 3, -1);
    const Tensor seen = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, true);
    const Tensor y = x + joined(seen);
    return y + down(gelu(up(second(y))));
  }
};

struct Transformer final : nn::Module {
  nn::Embedding words{kWords, kWidth};
  Block one, two;
  nn::Linear out{kWidth, kWords};
  void members(nn::Members& all) override { all("words", words), all("one", one), all("two", two), all("out", out); }
  Tensor forward(const Tensor& ids) const override { return flatten(out(two(one(words(ids)))), 0, 1); }
};

struct Task {
  std::function<std::shared_ptr<nn::Module>()> model;
  std::function<std::pair<Tensor, Tensor>()> batch;
};

Task images() {
  return {[] { return std::make_shared<Cnn>(); }, [] { return std::pair(rand({5, 1, 8, 8}), randint(3, {5})); }};
}
Task sentences() {
  return {[] { return std::make_shared<Transformer>(); },
          [] { return std::pair(randint(kWords, {4, kLength}), randint(kWords, {4 * kLength})); }};
}

// Returns the losses and the final state of the model.
Tensors train(const Task& task, bool compiled, int steps) {
  manual_seed(1);
  const std::shared_ptr<nn::Module> model = task.model();
  nn::AdamW optimizer(model->parameters(), 0.01);
  Twin step(compiled, [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy((*model)(x), y);
    loss.backward();
    clip_grad_norm_(model->parameters(), 1);
    optimizer.step();
    return loss;
  });
  Tensors all;
  for (int i = 0; i < steps; ++i) {
    const auto [x, y] = task.batch();
    all.push_back(step(x, y).detach());
  }
  for (const nn::NamedTensor& each : model->state_dict()) all.push_back(clone(each.tensor.detach()));
  EXPECT_TRUE(!compiled || step.step().figures().replayed == static_cast<size_t>(steps) - 2) << step.step().explain();
  return all;
}

// A GPU adds the gradients of equal words in undefined order, unless the program sets deterministic mode.
TEST(CompiledModels, LearnWithTheSameBits) {
  struct Deterministic {
    Deterministic() { set_deterministic(true); }
    ~Deterministic() { set_deterministic(false); }
  } const same_order;
  for (const Task& task : {images(), sentences()}) EXPECT_TRUE(same_bytes(train(task, true, 6), train(task, false, 6)));
}

}  // namespace
}  // namespace plugrad::test
