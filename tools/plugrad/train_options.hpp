// The options that say what to train on: shared by train and eval.
#pragma once
#include <tools/plugrad/options.hpp>
#include <tools/train/trainer.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace plugrad::tool {

// --data, --data-dir, --images, --labels, and (of training) --test-images, --test-labels.
void add_data_options(boost::program_options::options_description& options, bool training);
// Overrides what the options say of the data. Throws UsageError where they do not fit together.
void apply_data_options(const boost::program_options::variables_map& values, training::TrainingConfig& config);

struct TrainRequest {
  training::TrainingConfig config;
  std::string device = "cpu";
  std::string out;
  std::string resume;            // a checkpoint, or empty
  int64_t steps = 0;             // to stop at; 0 for the end
  int64_t checkpoint_every = 0;  // steps; 0 for each epoch
  bool json = false;
};

boost::program_options::options_description train_options();
// With what a checkpoint to resume says, and without what would not be the same run. Throws UsageError.
TrainRequest read_train_request(const boost::program_options::variables_map& values);

}  // namespace plugrad::tool
