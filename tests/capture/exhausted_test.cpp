// Compiled steps on a device whose memory ends.
#include <tests/capture/sim_device.hpp>

namespace plugrad::test {
namespace {

constexpr uint64_t kMemory = 8 << 20;
constexpr int64_t kColumns = 256;

struct Network {
  explicit Network(const Device& device) {
    manual_seed(4);
    for (int i = 0; i < 2; ++i)
      weights.push_back(rand({kColumns, kColumns}, DType::f32, device, -0.1, 0.1).requires_grad_());
  }
  Tensors weights;
};

// Fills the memory, then takes a step, then three more with memory. Returns the weights.
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

// What an optimiser counts is as if the step had not been called.
TEST_F(SimDevice, AStepThatFindsNoMemoryHasNotHappened) {
  set_device_options("sim:1", {{"memory", std::to_string(kMemory)}});
  const Device device("sim:1");
  EXPECT_TRUE(same_bytes(train(device, true), train(device, false)));
}

}  // namespace
}  // namespace plugrad::test
