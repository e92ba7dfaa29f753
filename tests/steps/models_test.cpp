// Compiled steps have the bits of eager steps: training steps of models, and images in the device's own layouts
// (plugrad/sdk/forms.h).
#include <plugrad/io/saved_model.hpp>
#include <plugrad/tensor/dlpack.hpp>
#include <tests/steps/twins.hpp>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
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

// --- Images: channels last in memory, and weights in forms of the device's own.

Tensor random(const Shape& shape) { return rand(shape, DType::f32, default_device(), -1, 1); }

// Convolutions of every kind between calls that keep an image's layout, and calls that do not.
struct Images {
  Tensor first = random({24, 3, 5, 5}), bias = random({24}), square = random({24, 24, 3, 3}),
         across = random({32, 24, 1, 1}), each = random({32, 1, 3, 3}), grouped = random({32, 8, 3, 3}),
         scale = random({32, 1, 1}), down = random({16, 32, 3, 3}), deep = random({9, 64, 3, 3});

  Tensor operator()(const Tensor& x) const {
    const NoGrad unrecorded;
    const Tensor a = relu(conv2d(x, first, bias, {2}, {2})), b = relu(conv2d(a, square, bias, {1}, {1}) + a);
    const Tensor c = silu(conv2d(max_pool2d(b, {3}, {2}, {1}), across)), d = conv2d(c, each, {}, {1}, {1}, {1}, 32);
    const Tensor e = conv2d(d * scale + c, grouped, {}, {1}, {1}, {1}, 4), half = slice(e, 1, 0, 16);
    const Tensor f = conv2d(cat({e, half, conv2d(e, down, {}, {1}, {1})}, 1), deep, {}, {1}, {1});
    const Tensor g = avg_pool2d(conv2d(e, square_of(e), {}, {2}, {1}), {3}, {1}, {1});
    return cat({flatten(f), flatten(g), flatten(mean(e, {2, 3})), flatten(softmax(e, 1))}, 0);
  }
  Tensor square_of(const Tensor&) const { return cat({grouped, grouped, grouped, grouped}, 1); }
};

TEST(CompiledImages, KeepTheBitsOfTheFunction) {
  const Images f;
  for (const bool fuse : {true, false})
    for (const int64_t n : {1, 3}) {
      Twin step(true, f, {.fuse = fuse});
      for (int i = 0; i < 3; ++i) {
        const Tensor x = random({n, 3, 19, 21});
        EXPECT_TRUE(same_bytes({step(x)}, {f(x)})) << n << " images, call " << i;
      }
      EXPECT_EQ(step.step().figures().replayed, 2);
      const std::string text = step.step().explain();
      const bool is_cpu = default_device().name() == "cpu:0";
      EXPECT_EQ(text.find("images with channels last") != std::string::npos, is_cpu) << text;
      EXPECT_EQ(text.find("in the device's own forms") != std::string::npos, is_cpu) << text;
    }
}

TEST(CompiledImages, AreSavedAsTheFunctionComputesThem) {
  const Images f;
  const Tensor x = random({1, 3, 19, 21});
  CompiledStep step({.name = "images"});
  for (int i = 0; i < 2; ++i) step.call({x}, "", [&](const Tensors& given) { return StepResults{{f(given[0])}}; });
  const std::string path = ::testing::TempDir() + "plugrad-images-" + std::to_string(getpid());
  save_model(step, path);
  const SavedModel model = load_model(path, default_device());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same_bytes(model({x}), {f(x)}));
  std::filesystem::remove(path);
}

TEST(CompiledImages, TrainWithTheBitsOfTheFunction) {
  const auto train = [](bool compiled) {
    manual_seed(3);
    Tensors weights{random({16, 8, 3, 3}).requires_grad_(), random({16, 16, 1, 1}).requires_grad_()};
    nn::SGD optimizer(weights, 0.1);
    Twin step(compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor loss = mean(square(conv2d(relu(conv2d(x, weights[0], {}, {1}, {1})), weights[1])));
      loss.backward();
      optimizer.step();
      return loss;
    });
    Tensors all;
    for (int i = 0; i < 4; ++i) all.push_back(step(random({2, 8, 9, 9})).detach());
    all.insert(all.end(), weights.begin(), weights.end());
    return all;
  };
  EXPECT_TRUE(same_bytes(train(true), train(false)));
}

// A form follows its weights: changes in place, by other compiled steps, and by libraries that share the memory.
TEST(CompiledImages, FollowTheirWeights) {
  const NoGrad unrecorded;
  Tensor weight = random({32, 16, 3, 3});
  const auto f = [&](const Tensor& x) { return conv2d(x, weight, {}, {1}, {1}); };
  Twin step(true, f);
  Twin scaling(true, [&](const Tensor& by) {
    weight.copy_(weight * by);
    return by + 1;
  });
  const Tensor x = random({1, 16, 7, 7}), by = random({1});
  const auto expect_same = [&](const char* after) { EXPECT_TRUE(same_bytes({step(x)}, {f(x)})) << after; };
  for (int i = 0; i < 3; ++i) expect_same("nothing");
  weight.mul_(2);
  expect_same("a change in place");
  select(weight, 0, 3).fill_(1);
  expect_same("a change of a view");
  for (int i = 0; i < 3; ++i) {
    scaling(by);
    expect_same("a compiled change");
  }
  weight.copy_(random(weight.shape()));
  expect_same("a copy");
  EXPECT_EQ(step.step().figures().recorded, 1);
}

TEST(CompiledImages, FollowWeightsThatAreShared) {
  if (!(default_device().capabilities() & PLUGRAD_HOST_MEM))
    GTEST_SKIP() << "only a device in host memory shares it with this program";
  const NoGrad unrecorded;
  const Tensor weight = random({32, 16, 3, 3}), x = random({1, 16, 7, 7});
  const auto f = [&](const Tensor& given) { return conv2d(given, weight, {}, {1}, {1}); };
  Twin step(true, f);
  for (int i = 0; i < 3; ++i) step(x);
  dlpack::Managed* const shared = dlpack::export_managed(weight);
  for (int i = 0; i < 3; ++i) {
    static_cast<float*>(shared->array.data)[i] += 1;
    EXPECT_TRUE(same_bytes({step(x)}, {f(x)})) << "while it is shared";
  }
  static_cast<float*>(shared->array.data)[5] += 1;
  shared->deleter(shared);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same_bytes({step(x)}, {f(x)})) << "after it was shared";
}

// The program writes to a weight in ways of which the step sees nothing but the storage.
TEST(CompiledImages, FollowWritesOfOtherSteps) {
  const NoGrad unrecorded;
  const Tensor x = random({1, 16, 7, 7});
  const auto check = [&](const char* what, const auto& write) {
    Tensor weight = random({32, 16, 3, 3});
    const auto f = [&](const Tensor& given) { return conv2d(given, weight, {}, {1}, {1}); };
    Twin step(true, f);
    for (int i = 0; i < 3; ++i) step(x);
    write(weight);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(same_bytes({step(x)}, {f(x)})) << what;
  };
  check("an argument, written as a captured tensor", [](Tensor& weight) {
    Twin other(true, [&](const Tensor& given) {
      weight.mul_(2);
      return sum(given);
    });
    other(weight);
  });
  check("an argument of a function that throws", [](Tensor& weight) {
    Twin other(true, [&](Tensor given) {
      given.mul_(2);
      throw std::runtime_error("late");
      return given;
    });
    EXPECT_THROW(other(weight), std::runtime_error);
  });
  if (!(default_device().capabilities() & PLUGRAD_HOST_MEM)) return;
  check("an address", [](Tensor& weight) {
    dlpack::Managed* const shared = dlpack::export_managed(weight);
    dlpack::note_address(weight);
    float* const at = static_cast<float*>(shared->array.data);
    shared->deleter(shared);
    at[7] += 1;
  });
}

// A step that writes to the memory of a weight under another name runs in the function's order.
TEST(CompiledImages, SeeWritesToTheirWeightsInOrder) {
  const NoGrad unrecorded;
  const Warnings quiet;
  const Tensor start = random({32, 16, 3, 3}), x = random({1, 16, 7, 7});
  Tensors results[2];
  for (const bool compiled : {false, true}) {
    Tensor weight = clone(start);
    Twin step(compiled, [&](Tensor given, const Tensor& image) {
      given.mul_(1.5);
      return conv2d(image, weight, {}, {1}, {1});
    });
    for (int i = 0; i < 4; ++i) results[compiled].push_back(step(weight, x));
  }
  EXPECT_TRUE(same_bytes(results[1], results[0]));
}

// Recordings of several shapes share a form.
TEST(CompiledImages, MakeAFormOnce) {
  const NoGrad unrecorded;
  const Tensor weight = random({128, 128, 3, 3});
  const uint64_t bytes = static_cast<uint64_t>(weight.count()) * 4;
  Twin step(true, [&](const Tensor& x) { return mean(conv2d(x, weight)); });
  const auto active = [&](int64_t side) {
    const Tensor x = random({1, 128, side, side});
    for (int i = 0; i < 2; ++i) step(x);
    default_device().sync();
    return default_device().memory().active;
  };
  const uint64_t first = active(8);
  for (const int64_t side : {4, 5, 6, 7}) EXPECT_LT(active(side), first + bytes);
}

// Weights of products, as they are and transposed, with one and with several slices of a long sum.
TEST(CompiledProducts, KeepTheBitsOfTheFunction) {
  const NoGrad unrecorded;
  size_t forms = 0;
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{100, 130}, {384, 100}, {1100, 48}, {25088, 27}})
    for (const bool turned : {false, true}) {
      const Tensor stored = turned ? random({n, k}) : random({k, n}), bias = random({n});
      const Tensor weight = turned ? transpose(stored) : stored;
      for (const int64_t m : {1, 2, 3, 13, 33, 260}) {
        if (m * k * n > 10'000'000) continue;
        const Tensor x = random({m, k}), batch = random({2, m, k});
        Twin step(true, [&](const Tensor& a, const Tensor& b) {
          return matmul(a, weight) + sum(addmm(bias, select(b, 0, 0), weight));
        });
        for (int i = 0; i < 3; ++i)
          EXPECT_TRUE(same_bytes({step(x, batch)}, {matmul(x, weight) + sum(addmm(bias, select(batch, 0, 0), weight))}))
              << m << " x " << k << " x " << n << (turned ? ", transposed" : "");
        forms += step.step().explain().find("own forms") != std::string::npos;
      }
    }
  EXPECT_GE(forms, default_device().name() == "cpu:0" ? 12u : 0u);
}

}  // namespace
}  // namespace plugrad::test
