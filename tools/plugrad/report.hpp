// The files of a training run beside its checkpoint.
#pragma once
#include <tools/train/trainer.hpp>

#include <cstdint>
#include <string>

namespace plugrad::tool {

struct RunSummary {
  training::Evaluation evaluation;  // of the final network
  double seconds = 0;               // of this process, including reading the data
  double training_seconds = 0;      // of the loop alone: steps, evaluations, checkpoints
  double samples_per_second = 0;    // in the loop
  int64_t resumed_from = 0;         // a step, or 0
  bool interrupted = false;
};

std::string results_json(const training::Trainer& trainer, const RunSummary& summary);
std::string losses_csv(const training::History& history);
std::string loss_svg(const training::Trainer& trainer, const training::Evaluation& evaluation);

}  // namespace plugrad::tool
