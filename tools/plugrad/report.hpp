// What a training run leaves behind, beside its checkpoint.
#pragma once
#include <tools/train/trainer.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace plugrad::tool {

struct RunSummary {
  training::Evaluation evaluation;  // of the network as it is now
  double seconds = 0;               // of this process, from reading the data on
  double training_seconds = 0;      // of these, the loop: steps, evaluations, checkpoints
  double samples_per_second = 0;    // in the loop
  int64_t resumed_from = 0;         // a step, or 0
  bool interrupted = false;
};

// The line of /proc/self/maps in which the kernel shows the code of a file in this process; nothing where there is none.
std::optional<std::string> mapping_of(const std::string& path);

std::string results_json(const training::Trainer& trainer, const RunSummary& summary);
std::string losses_csv(const training::History& history);
std::string loss_svg(const training::Trainer& trainer, const training::Evaluation& evaluation);

}  // namespace plugrad::tool
