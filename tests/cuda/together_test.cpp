// How many kernels the steps of optimisers launch on the emulated GPU.
#include <plugrad/backends/cuda.hpp>
#include <plugrad/plugrad.hpp>
#include <simt/control.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace plugrad::test {
namespace {

uint64_t launches(const std::function<void()>& f) {
  default_device().sync();
  const uint64_t before = simt::launches();
  f();
  default_device().sync();
  return simt::launches() - before;
}

std::vector<Tensor> parameters(int count) {
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(rand({1 + i % 7, 3}).requires_grad_());
    all.back().set_grad(rand({1 + i % 7, 3}));
  }
  return all;
}

class OneLaunch : public ::testing::Test {
 protected:
  OneLaunch() {
    add_backend(plugrad_cuda_backend(host()));
    set_default_device(Device("cuda-emu"));
  }
};

TEST_F(OneLaunch, UpdatesManyParameters) {
  nn::Adam few(parameters(96), 0.1), many(parameters(97), 0.1);
  EXPECT_EQ(launches([&] { few.step(); }), 1u);
  EXPECT_EQ(launches([&] { many.step(); }), 2u);
}

// Groups of parameters have rates of their own.
TEST_F(OneLaunch, IsForParametersOfOneGroup) {
  nn::SGD sgd({{parameters(5)}, {parameters(5), {{"lr", 0.5}}}, {parameters(5), {{"momentum", 0.9}}}}, 0.1);
  EXPECT_EQ(launches([&] { sgd.step(); }), 3u);
}

TEST_F(OneLaunch, IsEnoughInACompiledStep) {
  const std::vector<Tensor> all = parameters(9);
  nn::AdamW adam(all, 0.1);
  auto step = compile([&](const Tensor& x) {
    const Tensor y = neg(x);
    adam.step();
    return y;
  });
  const Tensor x = rand({4});
  for (int i = 0; i < 3; ++i) step(x);
  EXPECT_EQ(launches([&] { step(x); }), 2u) << step.explain();
}

}  // namespace
}  // namespace plugrad::test
