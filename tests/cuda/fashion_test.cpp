// The demo's network on the emulated device: 784-32-10, batch 32, 100 steps on Fashion-MNIST; the losses match the CPU's.
#include <plugrad/runtime/runtime.hpp>
#include <tools/train/trainer.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <vector>

namespace plugrad::test {
namespace {

constexpr const char* kData = "/usr/share/datasets/fashion-mnist";
constexpr int kSteps = 100;

std::vector<float> losses_on(Device device) {
  training::TrainingConfig config = training::default_config("fashion-mnist");
  config.hidden = {32};
  config.batch = 32;
  training::Trainer trainer(config, training::load_data(config), device);
  return trainer.run_steps(kSteps);
}

// Weights and batches are the same on both devices. Sums run in another order, and Adam's division by small numbers
// amplifies the differences.
TEST(FashionMnist, HasTheLossesOfTheCpu) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no dataset-fashion-mnist in " << kData;
  if (!has_device("cpu")) GTEST_SKIP() << "no plugin for cpu";
  const std::vector<float> want = losses_on(Device("cpu")), got = losses_on(default_device());
  ASSERT_EQ(want.size(), size_t{kSteps});
  ASSERT_EQ(got.size(), size_t{kSteps});
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-3 * std::abs(want[i])) << "step " << i;
  EXPECT_LT(got.back(), 0.7 * got.front());
}

}  // namespace
}  // namespace plugrad::test
