// The configuration of a training run: everything that determines its numbers, and nothing more.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::training {

struct TrainingConfig {
  std::string data = "fashion-mnist";  // "fashion-mnist", "moons" or "idx"
  std::string directory;               // of fashion-mnist; empty: where Debian installs it
  std::string images, labels;          // of idx
  std::string test_images, test_labels;
  std::vector<int64_t> hidden = {512, 512};  // widths of the hidden layers
  int64_t epochs = 10;
  int64_t batch = 256;
  double rate = 1e-3;  // at the first step; falls to 0 along a cosine
  uint64_t seed = 1;   // of weights, shuffles and moons
  // The backward passes of all ranks together in a step, which fix the bits whatever the number of ranks; 0: one of each.
  int64_t slices = 0;
  friend bool operator==(const TrainingConfig&, const TrainingConfig&) = default;
};

// Returns the defaults for a data set. Throws Error (invalid) for an unknown name; the message lists the known names.
TrainingConfig default_config(const std::string& data);

std::string config_to_json(const TrainingConfig& config);
// Throws Error (io_error) if the text is not JSON, lacks a member or has a member of a wrong type.
TrainingConfig config_from_json(const std::string& text);

}  // namespace plugrad::training
