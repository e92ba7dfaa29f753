// Three small models to test whether a device can train: a multilayer perceptron, a convolutional network and a
// transformer. Their data are made on the device from fixed seeds, so every device sees the same problem.
#pragma once
#include <plugrad/runtime/device.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::tool {

struct TrialResult {
  int64_t steps = 0;
  double first_loss = 0, last_loss = 0;  // cross-entropy, in nats, of the first and of the last batch
  double accuracy = 0;                   // of the last batch
};

struct TrialModel {
  const char* name;         // "mlp"
  const char* description;  // in one line
  double accuracy;          // to be reached; chance is a half, a fourth and an eighth
  TrialResult (*train)(Device device);
};

// The models, the simplest first. `train` throws Error if the device fails or cannot compute an op.
const std::vector<TrialModel>& trial_models();

}  // namespace plugrad::tool
