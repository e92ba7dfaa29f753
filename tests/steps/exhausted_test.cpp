// Compiled steps on a device that runs out of memory.
#include <tests/steps/sim_device.hpp>

namespace plugrad::test {
namespace {

constexpr int64_t kColumns = 256;

Device device_with_little_memory() {
  static const bool is_set = [] {
    set_device_options("sim:1", {{"memory", std::to_string(24 << 20)}});
    return true;
  }();
  EXPECT_TRUE(is_set);
  return Device("sim:1");
}

struct Network {
  explicit Network(const Device& device) {
    manual_seed(4);
    for (int i = 0; i < 2; ++i)
      weights.push_back(rand({kColumns, kColumns}, DType::f32, device, -0.1, 0.1).requires_grad_());
  }
  Tensors weights;
};

// Takes four steps, then a compiled step with no memory left, which fails, then three more. Returns the weights.
Tensors train(const Device& device, bool compiled) {
  const Network network(device);
  nn::Adam optimizer(network.weights, 0.01);
  Twin step(compiled, [&](const Tensor& x) {
    optimizer.zero_grad();
    mean(tanh(matmul(tanh(matmul(x, network.weights[0])), network.weights[1]))).backward();
    optimizer.step();
  });
  const Tensor x = full({64, kColumns}, 0.5, DType::f32, device);
  for (int i = 0; i < 4; ++i) step(x);
  if (compiled) {
    const Tensor held = network.weights[0].grad();
    Tensors all;
    try {
      for (;;) all.push_back(zeros({1 << 14}, DType::f32, device));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::out_of_memory);
    }
    EXPECT_THROW(step(x), Error);
  }
  for (int i = 0; i < 3; ++i) step(x);
  EXPECT_TRUE(!compiled || step.step().figures().replayed == 5) << step.step().explain();
  Tensors after;
  for (const Tensor& each : network.weights) after.push_back(each.detach());
  return after;
}

// The optimiser's counts are the same as without the failed step.
TEST_F(SimDevice, AStepThatFindsNoMemoryHasNotHappened) {
  const Device device = device_with_little_memory();
  EXPECT_TRUE(same_bytes(train(device, true), train(device, false)));
}

// The free memory consists of separate pieces, each large enough for one gradient.
TEST_F(SimDevice, AStepTakesGradientsFromPieces) {
  const Device device = device_with_little_memory();
  constexpr int64_t kPiece = 1 << 18;
  Tensors weights, pieces;
  for (int i = 0; i < 6; ++i) weights.push_back(ones({kPiece}, DType::f32, device).requires_grad_());
  auto step = compile([&](const Tensor& x) {
    for (Tensor each : weights) each.clear_grad();
    Tensor loss;
    for (const Tensor& each : weights) loss = loss.defined() ? loss + sum(each * x) : sum(each * x);
    loss.backward();
  });
  try {
    for (;;) pieces.push_back(zeros({kPiece}, DType::f32, device));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory);
  }
  for (size_t i = 0; i < pieces.size(); i += 2) pieces[i] = Tensor();
  for (int i = 1; i < 5; ++i) {
    step(full({1}, i, DType::f32, device));
    for (const Tensor& each : weights) EXPECT_EQ(each.grad().to_vector<float>().back(), static_cast<float>(i));
  }
  EXPECT_EQ(step.figures().replayed, 2u) << "gradients that are there make another recording";
}

}  // namespace
}  // namespace plugrad::test
