#include <tools/trial/models.hpp>

#include <plugrad/plugrad.hpp>

namespace plugrad::tool {
namespace {

struct Batch {
  Tensor inputs, labels;  // labels: (n), i64
};

// Trains on a new batch in each step. `logits` returns (n, classes).
template <class Make, class Logits>
TrialResult taught(const nn::Module& model, int64_t steps, double rate, Make make, Logits logits) {
  nn::Adam optimizer(model.parameters(), rate);
  TrialResult result{.steps = steps};
  for (int64_t step = 0; step < steps; ++step) {
    const Batch batch = make();
    const Tensor scores = logits(batch.inputs);
    const Tensor loss = cross_entropy(scores, batch.labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step == 0) result.first_loss = loss.item<double>();
    if (step + 1 < steps) continue;
    result.last_loss = loss.item<double>();
    result.accuracy = mean(cast(eq(argmax(scores, {-1}), batch.labels), DType::f32)).item<double>();
  }
  return result;
}

// Points of a square; the class is 1 if the coordinates of a point have the same sign, else 0.
TrialResult train_mlp(Device device) {
  const nn::Sequential model{nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 32), nn::Tanh(), nn::Linear(32, 2)};
  const auto make = [&]() -> Batch {
    const Tensor points = rand({256, 2}, DType::f32, device) * 2 - 1;
    return {points, cast(gt(select(points, 1, 0) * select(points, 1, 1), 0), DType::i64)};
  };
  return taught(model, 200, 0.01, make, [&](const Tensor& x) { return model(x); });
}

// Images of 8 x 8 with noise; the class is the quarter with a square of 3 x 3.
TrialResult train_cnn(Device device) {
  const nn::Sequential model{nn::Conv2d(1, 8, {3}, {.padding = {1}}),
                             nn::BatchNorm2d(8),
                             nn::ReLU(),
                             nn::MaxPool2d({2}),
                             nn::Conv2d(8, 8, {3}),
                             nn::ReLU(),
                             nn::Dropout(0.1),
                             nn::Flatten(),
                             nn::Linear(32, 4)};
  const Tensor squares = zeros({4, 1, 8, 8}, DType::f32, device);
  for (int64_t quarter = 0; quarter < 4; ++quarter) {
    const int64_t row = 4 * (quarter / 2), column = 4 * (quarter % 2);
    slice(slice(select(squares, 0, quarter), 1, row, row + 3), 2, column, column + 3).fill_(1);
  }
  const auto make = [&]() -> Batch {
    const Tensor labels = randint(0, 4, {32}, DType::i64, device);
    return {index_select(squares, 0, labels) + randn({32, 1, 8, 8}, DType::f32, device) * 0.3, labels};
  };
  return taught(model, 80, 0.01, make, [&](const Tensor& x) { return model(x); });
}

constexpr int64_t kKinds = 8, kLength = 12, kWidth = 32;

// (n, length, 2), the kind of each token and 1 at the marked token -> scores of the kinds, read at the last token by
// attention to all tokens.
struct Reader final : nn::Module {
  void members(nn::Members& all) override {
    all("kinds", kinds), all("marks", marks), all("layer", layer), all("last", last);
  }
  Tensor forward(const Tensor& x) const override {
    return last(select(layer(kinds(select(x, 2, 0)) + marks(select(x, 2, 1))), 1, kLength - 1));
  }
  nn::Embedding kinds{kKinds, kWidth}, marks{2, kWidth};
  nn::TransformerEncoderLayer layer{kWidth, 2, {.dim_feedforward = 64, .dropout = 0, .batch_first = true}};
  nn::Linear last{kWidth, kKinds};
};

// Tokens of eight kinds; one token is marked, and the class is its kind.
TrialResult train_transformer(Device device) {
  const Reader model;
  const Tensor places = arange(0, kLength, 1, DType::i64, device);
  const auto make = [&]() -> Batch {
    const Tensor mark = randint(0, kLength, {32, 1}, DType::i64, device);
    const Tensor kinds = randint(0, kKinds, {32, kLength}, DType::i64, device);
    return {stack({kinds, cast(eq(places, mark), DType::i64)}, -1), select(gather(kinds, 1, mark), 1, 0)};
  };
  return taught(model, 150, 0.005, make, [&](const Tensor& x) { return model(x); });
}

}  // namespace

const std::vector<TrialModel>& trial_models() {
  static const std::vector<TrialModel> models = {
      {"mlp", "three linear layers, which tell apart the quarters of a square", 0.9, train_mlp},
      {"cnn", "two convolutions with batch norm, pooling and dropout, which find a square in noise", 0.9, train_cnn},
      {"transformer", "a layer of attention, which reads the marked token", 0.8, train_transformer},
  };
  return models;
}

}  // namespace plugrad::tool
