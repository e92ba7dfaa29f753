// The options that choose the data, shared by train and eval.
#pragma once
#include <tools/plugrad/options.hpp>
#include <tools/train/trainer.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace plugrad::tool {

// --data, --data-dir, --images, --labels, and (of training) --test-images, --test-labels.
void add_data_options(boost::program_options::options_description& options, bool training);
// Overrides the configuration with the options about data. Throws UsageError where options contradict each other.
void apply_data_options(const boost::program_options::variables_map& values, training::TrainingConfig& config);

struct TrainRequest {
  training::TrainingConfig config;
  std::string device = "cpu";
  std::string out;
  std::string resume;            // a checkpoint, or empty
  int64_t steps = 0;             // stop after this many; 0: at the end
  int64_t checkpoint_every = 0;  // in steps; 0: at each epoch
  bool json = false;
};

boost::program_options::options_description train_options();
// Parses the options of train. A resumed checkpoint supplies the configuration; an option that would make it a different
// run throws UsageError.
TrainRequest read_train_request(const boost::program_options::variables_map& values);

}  // namespace plugrad::tool
