// The demo's network has the same losses on several devices: 50 steps with batches of 32.
#include <plugrad/runtime/runtime.hpp>
#include <tests/paths.hpp>
#include <tools/train/trainer.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace plugrad::test {
namespace {

constexpr const char* kData = "/usr/share/datasets/fashion-mnist";

std::vector<float> losses_on(const std::string& device) {
  training::TrainingConfig config = training::default_config("fashion-mnist");
  config.batch = 32;
  training::Trainer trainer(config, training::load_data(config), Device(device));
  return trainer.run_steps(50);
}

void expect_close(const std::vector<float>& a, const std::vector<float>& b, double bound) {
  ASSERT_EQ(a.size(), 50u);
  ASSERT_EQ(b.size(), 50u);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound * std::abs(a[i])) << "step " << i;
  EXPECT_LT(a.back(), 0.7 * a.front());
}

class FashionMnistOn : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no dataset-fashion-mnist in " << kData;
    for (const char* name : {"cpu", "reference"})
      if (!has_device(name)) GTEST_SKIP() << "no plugin for " << name;
  }
};

// Uniform numbers, and so the weights, have equal bits on each device. Sums differ in order, and Adam divides by small
// numbers.
TEST_F(FashionMnistOn, ReferenceHasTheLossesOfTheCpu) { expect_close(losses_on("cpu"), losses_on("reference"), 2e-3); }

// sim uses the kernels of reference, so it gives the same bits with different memory, streams and copies.
TEST_F(FashionMnistOn, SimHasTheLossesOfReference) {
  const std::string file = test::test_plugin_path("libplugrad-backend-sim.so");
  if (!has_device("sim")) load_plugin(file);
  expect_close(losses_on("reference"), losses_on("sim"), 0);
}

}  // namespace
}  // namespace plugrad::test
