// Compares the memory of compiled steps with the memory of eager steps.
#include <tests/steps/twins.hpp>

#include <chrono>

namespace plugrad::test {
namespace {

constexpr int64_t kColumns = 64;
constexpr uint64_t kBytes = kColumns * kColumns * sizeof(float);  // of a gradient

// A chain of layers.
struct Chain {
  Chain() {
    manual_seed(2);
    for (int i = 0; i < 4; ++i)
      weights.push_back(rand({kColumns, kColumns}, DType::f32, default_device(), -0.1, 0.1).requires_grad_());
  }
  Tensor loss(Tensor x) const {
    for (const Tensor& each : weights) x = tanh(matmul(x, each));
    return mean(x * x);
  }
  // Replaces the gradients by the gradients of the loss.
  void differentiate(const Tensor& x) const {
    for (Tensor each : weights) each.clear_grad();
    loss(x).backward();
  }
  Tensors weights;
};

// Returns the peak of a step that releases activations while it computes gradients. Where fusions are compiled in the
// background, waits until the peak is at most `enough`: only then does the step use its plan of memory.
uint64_t peak_of_training(int64_t rows, bool compiled, bool fusions, uint64_t enough) {
  const Chain chain;
  nn::SGD optimizer(chain.weights, 0.01);
  const auto train = [&](const Tensor& in) {
    optimizer.zero_grad();
    Tensor loss = chain.loss(in);
    loss.backward();
    optimizer.step();
    return loss;
  };
  Twin step(compiled, train, {.fuse = fusions});
  const Tensor x = rand({rows, kColumns});
  for (int i = 0; i < 4; ++i) step(x);
  const Device device = x.device();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    device.reset_peak();
    for (int i = 0; i < 4; ++i) step(x);
  } while (device.memory().peak > enough && std::chrono::steady_clock::now() < until);
  return device.memory().peak;
}

// Small blocks are cut from chunks, and the whole chunks count. A first run makes the chunks, so that both later runs find
// them.
void expect_no_higher_peak(int64_t rows, bool fusions) {
  peak_of_training(rows, true, fusions, UINT64_MAX);
  const uint64_t eager = peak_of_training(rows, false, fusions, UINT64_MAX);
  EXPECT_LE(peak_of_training(rows, true, fusions, eager), eager);
}

TEST(CompiledMemory, IsNoMoreThanOfEagerSteps) { expect_no_higher_peak(32, true); }
// An activation has the size of two gradients, so that it needs the memory of both.
TEST(CompiledMemory, LiesInTheRoomOfSeveralGradients) { expect_no_higher_peak(128, false); }

// Gradients are adjacent in memory. Holding one of them does not keep the others alive.
TEST(CompiledMemory, OfOneGradientMayBeHeld) {
  constexpr int kSteps = 400;
  const auto run = [](bool compiled) {
    const Chain chain;
    Twin step(compiled, [&](const Tensor& x) { chain.differentiate(x); });
    Tensors held;
    uint64_t before = 0;
    for (int i = 0; i < kSteps; ++i) {
      step(full({8, kColumns}, 0.001 * i));
      held.push_back(chain.weights[static_cast<size_t>(i) % 4].grad());
      if (i == 7) before = default_device().memory().reserved;
    }
    const uint64_t most = kSteps * kBytes + (2 << 20);  // a segment is not full yet
    EXPECT_LE(default_device().memory().reserved, before + most) << (compiled ? "compiled" : "eager");
    for (const Tensor& each : chain.weights) held.push_back(each.grad());
    return held;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

// Not every new recording allocates memory for the gradients from the device.
TEST(CompiledMemory, OfOneGradientMayBeHeldForEachRecording) {
  constexpr int kRecordings = 300;
  const Chain chain;
  auto step = compile([&](const Tensor& x) { chain.loss(x).backward(); });
  Tensors held;
  MemoryStats before;
  for (int i = 0; i < 3 * kRecordings; ++i) {
    for (Tensor each : chain.weights) each.clear_grad();
    if (i % 3 == 0) step.clear();
    step(full({8, kColumns}, 0.001 * i));
    if (i % 3 == 2) held.push_back(chain.weights[1].grad());
    if (i == 30) before = default_device().memory();
  }
  const MemoryStats after = default_device().memory();
  EXPECT_LE(after.reserved - before.reserved, after.active - before.active + (4 << 20));
}

// Where gradients are not adjacent in memory, other tensors take no more memory than they need.
TEST(CompiledMemory, OfHeldGradientsIsThatOfEagerSteps) {
  const auto peak = [](bool compiled) {
    const Chain chain;
    Twin step(compiled, [&](const Tensor& x) { chain.differentiate(x); });
    Tensor held;
    for (int i = 0; i < 30; ++i) {
      step(full({1, kColumns}, 0.01 * i));
      held = chain.weights[1].grad();
      if (i == 20) default_device().reset_peak();
    }
    return default_device().memory().peak;
  };
  peak(true);
  EXPECT_LE(peak(true), peak(false) + kBytes);
}

// All gradients are cleared before the step, so that their memory is one free piece.
TEST(CompiledMemory, DoesNotGrow) {
  const Chain chain;
  Twin step(true, [&](const Tensor& x) { chain.loss(x).backward(); });
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) {
      for (Tensor each : chain.weights) each.clear_grad();
      step(full({32, kColumns}, 0.01 * i));
    }
    return default_device().memory();
  };
  const MemoryStats before = run(10), after = run(40);
  EXPECT_EQ(after.active, before.active);
  EXPECT_EQ(after.reserved, before.reserved);
}

}  // namespace
}  // namespace plugrad::test
