// The options that choose the data, shared by train and eval.
#pragma once
#include <tools/plugrad/options.hpp>
#include <tools/train/trainer.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace plugrad::tool {

// --data, --data-dir, --images, --labels, and (of training) --test-images, --test-labels.
void add_data_options(Options& options, bool training);
// Overrides the configuration with the options about data. Throws UsageError if options contradict each other.
void apply_data_options(const Options& options, training::TrainingConfig& config);

struct TrainRequest {
  training::TrainingConfig config;
  std::string device = "cpu";
  std::string out;
  std::string resume;            // a checkpoint, or empty
  int64_t steps = 0;             // stop after this number; 0: at the end
  int64_t checkpoint_every = 0;  // in steps; 0: at each epoch
  int64_t ranks = 0;             // of --ranks; 0: not given
  bool json = false;
  bool deterministic = false;
  bool compile = false;
};

void add_train_options(Options& options);
// Parses the options of train. A resumed checkpoint supplies the configuration. Throws UsageError if an option would make
// it a different run.
TrainRequest read_train_request(const Options& options);

}  // namespace plugrad::tool
