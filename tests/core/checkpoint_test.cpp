// Checkpoints: values that are computed again in the backward pass.
#include <tests/core/expect.hpp>

#include <atomic>
#include <cmath>
#include <thread>

namespace plugrad::test {
namespace {

Tensor leaf(const std::vector<double>& values) { return f64(values).requires_grad_(); }
using Tensors = std::vector<Tensor>;

Tensor layers(const Tensor& x, const Tensor& w) {
  const Tensor a = tanh(x * w), b = exp(a) * x;
  return relu(b) * a / w;
}

struct Counted {
  int calls = 0;
  Tensor operator()(const Tensor& x, const Tensor& w) { return ++calls, layers(x, w); }
};

TEST(Checkpoint, GivesTheSameGradients) {
  for (bool create_graph : {false, true}) {
    const auto gradients = [&](bool checkpointed) {
      const Tensor x = leaf({0.5, -1}), w = leaf({2, 3});
      const Tensor in = x * 2, y = checkpointed ? checkpoint(layers, in, w) : layers(in, w);
      Tensors first = grad({sum(y * y)}, {x, w, in}, {.create_graph = create_graph});
      if (!create_graph) return first;
      return grad({sum(first[0] * first[1])}, {x, w});
    };
    const Tensors expected = gradients(false), actual = gradients(true);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(actual[i], {2}, elements(expected[i]))) << i;
  }
}

TEST(Checkpoint, RunsTheFunctionOnceMore) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  int calls = 0;
  const Tensor y = checkpoint(
      [&](const Tensor& in) {
        ++calls;
        return layers(in, w);
      },
      x);
  EXPECT_EQ(calls, 1);
  for (int pass = 0; pass < 2; ++pass) sum(y).backward({}, {.retain_graph = true});
  EXPECT_EQ(calls, 2);
  const Tensor x2 = leaf({1, 2}), w2 = leaf({3, 4});
  for (int pass = 0; pass < 2; ++pass) sum(layers(x2, w2)).backward();
  EXPECT_TRUE(close(x.grad(), {2}, elements(x2.grad())));
  EXPECT_TRUE(close(w.grad(), {2}, elements(w2.grad())));
}

TEST(Checkpoint, KeepsNoIntermediateValues) {
  constexpr int64_t kCount = 1 << 16;
  const auto held = [](bool checkpointed) {
    const Tensor x = ones({kCount}).requires_grad_();
    const Device device = x.device();
    const uint64_t before = device.memory().active;
    const auto f = [](const Tensor& in) { return exp(tanh(exp(tanh(exp(tanh(in)))))); };
    const Tensor y = checkpointed ? checkpoint(f, x) : f(x);
    device.sync();
    return device.memory().active - before;
  };
  EXPECT_GE(held(false), 6 * kCount * sizeof(float));
  EXPECT_LE(held(true), 2 * kCount * sizeof(float));
}

TEST(Checkpoint, JustCallsWithoutRecording) {
  Counted f;
  const Tensor x = leaf({1}), w = leaf({2});
  const NoGrad unrecorded;
  EXPECT_FALSE(checkpoint(std::ref(f), x, w).requires_grad());
  EXPECT_EQ(f.calls, 1);
}

TEST(Checkpoint, ResultsOfAnyType) {
  const Tensor x = leaf({2});
  const auto [y, name] = checkpoint([](const Tensor& in) { return std::pair(exp(in) * in, std::string("name")); }, x);
  EXPECT_EQ(name, "name");
  y.backward();
  EXPECT_TRUE(close(x.grad(), {1}, {3 * std::exp(2.0)}, 1e-14));
  const Tensors all = checkpoint([](const Tensors& in) { return Tensors{in[0] * in[1], in[0]}; }, {x, x});
  EXPECT_TRUE(all[1].is_same(x));
}

TEST(Checkpoint, PassesOverPartsOfTheGraph) {
  const Tensor x = leaf({1, 2});
  int calls = 0;
  const Tensors y = checkpoint(
      [&](const Tensors& in) {
        ++calls;
        return Tensors{exp(in[0]), in[0] * in[0], tanh(in[0])};
      },
      {x});
  sum(y[1]).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {2, 4}));
  sum(y[0]).backward();
  EXPECT_TRUE(close(x.grad() - exp(x.detach()), {2}, {2, 4}, 1e-14));
  EXPECT_EQ(calls, 2);
}

TEST(Checkpoint, NestsAndRestoresOnlyWhatIsNeeded) {
  for (bool create_graph : {false, true}) {
    int outer = 0, inner = 0;
    const Tensor w = leaf({1.5});
    const auto g = [&](const Tensor& x) { return ++inner, exp(x * w) * x; };
    const auto f = [&](const Tensor& x) {
      ++outer;
      const Tensor y = checkpoint(g, tanh(x));
      return checkpoint(g, y * x) + y * y;
    };
    const auto gradients = [&](const Tensor& x, const Tensor& y) {
      Tensors first = grad({y}, {x, w}, {.create_graph = create_graph});
      return create_graph ? grad({first[0] * first[1]}, {x, w}) : first;
    };
    const Tensor x = leaf({0.5});
    const Tensors actual = gradients(x, checkpoint(f, x));
    EXPECT_EQ(outer, 2);
    EXPECT_EQ(inner, 6);  // 2 in each of the two runs of f, and 2 recomputations
    const auto plain = [&](const Tensor& in) {
      const Tensor y = exp(tanh(in) * w) * tanh(in), z = y * in;
      return exp(z * w) * z + y * y;
    };
    const Tensors expected = gradients(x, plain(x));
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(close(actual[i], {1}, elements(expected[i]), 1e-13)) << i;
  }
}

TEST(Checkpoint, RandomNumbersRepeat) {
  const Tensor x = ones({1000}, DType::f32).requires_grad_();
  Tensor mask;
  const auto f = [&](const Tensor& in) {
    const Tensor y = dropout(in * in, 0.5);
    if (!mask.defined()) mask = y.detach();
    return y;
  };
  const Tensor y = checkpoint(f, x);
  const GeneratorState between = generator_state(x.device());
  sum(y).backward();
  EXPECT_EQ(generator_state(x.device()), between);
  EXPECT_TRUE(close(x.grad(), {1000}, elements(mask * 2)));
  const Tensor z = checkpoint(f, x, CheckpointOptions{.preserve_rng_state = false});
  sum(z).backward();
  EXPECT_NE(generator_state(x.device()), between);
}

TEST(Checkpoint, UserFunctionsInside) {
  struct Square : Function {
    std::string name() const override { return "square"; }
    Tensors forward(const Tensors& x) override {
      const Tensors out = {x[0] * x[0], exp(x[0])};
      save_for_backward({x[0], out[1]});
      return out;
    }
    Tensors backward(const Tensors& grads) override {
      const Tensors saved = saved_tensors();
      return {grads[0] * saved[0] * 2 + grads[1] * saved[1]};
    }
  };
  const auto f = [](const Tensor& in) {
    const Tensors out = apply_function<Square>({in * in});
    return out[0] * out[1];
  };
  const auto gradients = [&](bool checkpointed) {
    const Tensor x = leaf({0.5, 1}), y = checkpointed ? checkpoint(f, x) : f(x);
    const Tensor first = grad({sum(y)}, {x}, {.create_graph = true})[0];
    return Tensors{first, grad({sum(first)}, {x})[0]};
  };
  const Tensors expected = gradients(false), actual = gradients(true);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(close(actual[i], {2}, elements(expected[i]))) << i;
}

TEST(Checkpoint, GradientsInsideTheFunction) {
  const auto f = [](const Tensor& in) {
    const Tensor y = in * in * in;
    return grad({sum(y)}, {in}, {.create_graph = true})[0] * exp(in);  // 3 x^2 e^x
  };
  const Tensor x = leaf({1, 2});
  sum(checkpoint(f, x * 1)).backward();
  const Tensor x0 = x.detach();
  EXPECT_TRUE(close(x.grad() - (x0 * 6 + x0 * x0 * 3) * exp(x0), {2}, {0, 0}, 1e-12));
}

TEST(Checkpoint, HooksInsideTheFunctionRunOnce) {
  int calls = 0;
  const auto f = [&](const Tensor& in) {
    const Tensor y = in * in;
    y.register_hook([&](const Tensor& grad) { return ++calls, grad * 10; });
    return y * in;
  };
  const Tensor x = leaf({2});
  checkpoint(f, x).backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(close(x.grad(), {1}, {4 + 10 * 2 * 2 * 2}));
}

// A tensor that the second run stores has a graph like any other tensor.
TEST(Checkpoint, TensorsThatTheSecondRunStoresHaveAGraph) {
  const Tensor x = leaf({2});
  Tensor hidden;
  const Tensor y = checkpoint([&](const Tensor& in) { return (hidden = in * in) * in; }, x);
  y.backward();
  Tensor(x).clear_grad();
  hidden.backward();
  EXPECT_TRUE(close(x.grad(), {1}, {4}));
}

// --- Changes that a checkpoint detects.

TEST(Checkpoint, ChangedTensorsAreNoticed) {
  Tensor x = leaf({1}), w = leaf({2}), b = leaf({3}), in = f64({5});
  struct Row {
    Tensor& changed;
    const char* text;
  };
  for (const Row& row : {Row{w, "leaf"}, Row{b, "leaf"}, Row{in, "input"}}) {
    const Tensor y = checkpoint([&](const Tensor& a, const Tensor& c) { return exp(a * w + b) * c; }, x, in);
    {
      const NoGrad unrecorded;
      row.changed.fill_(1);
    }
    EXPECT_TRUE(throws(Code::invalid, {"[checkpoint]", row.text, "changed in place"}, [&] { y.backward(); }));
    EXPECT_FALSE(x.grad().defined() || w.grad().defined());
  }
}

TEST(Checkpoint, AFunctionThatDoesSomethingElseIsNoticed) {
  int calls = 0;
  const Tensor x = leaf({1, 2});
  const auto fewer = [&](const Tensor& in) { return calls++ ? exp(in) : exp(exp(in)); };
  EXPECT_TRUE(
      throws(Code::invalid, {"[checkpoint]", "2 ops", "1 or others"}, [&] { sum(checkpoint(fewer, x)).backward(); }));
  calls = 0;
  const auto other = [&](const Tensor& in) { return calls++ ? tanh(in) : exp(in); };
  EXPECT_TRUE(throws(Code::invalid, {"[checkpoint]", "must do the same"}, [&] { sum(checkpoint(other, x)).backward(); }));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Checkpoint, AnErrorInEitherRunEndsWithoutTraces) {
  const Tensor x = leaf({1, 2});
  int fails_at = 0, calls = 0;
  const auto f = [&](const Tensor& in) {
    const Tensor y = exp(in);
    if (calls++ == fails_at) throw std::runtime_error("enough");
    return y * y;
  };
  EXPECT_EQ(thrown([&] { checkpoint(f, x); }).message, "enough");
  EXPECT_TRUE(grad_enabled());
  calls = 0, fails_at = 1;
  const Tensor y = sum(checkpoint(f, x));
  EXPECT_EQ(thrown([&] { y.backward(); }).message, "enough");
  EXPECT_FALSE(x.grad().defined());
  y.backward();  // the third run succeeds
  EXPECT_TRUE(close(x.grad() - exp(x.detach() * 2) * 2, {2}, {0, 0}, 1e-12));
}

TEST(Checkpoint, UndefinedInputsAreAnError) {
  EXPECT_TRUE(throws(Code::invalid, {"[checkpoint]", "undefined"}, [] { checkpoint(layers, Tensor(), Tensor()); }));
}

TEST(Checkpoint, OnSeveralThreads) {
  const Tensor w = leaf({0.5});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const Tensor x = leaf({0.25 * i + 0.5}), plain = x.detach().requires_grad_();
      for (int step = 0; step < 50; ++step) {
        const Tensor expected = grad({layers(plain, w)}, {plain})[0];
        const Tensor y = checkpoint([&](const Tensor& in) { return layers(in, w); }, x);
        if (!close(grad({y}, {x})[0], {1}, elements(expected))) ++wrong;
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace plugrad::test
