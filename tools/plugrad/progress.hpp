// Shows the progress of a training run on stderr: a bar on a terminal, else a line for each epoch.
#pragma once
#include <tools/train/trainer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace plugrad::tool {

class Progress {
 public:
  // last_step: the step at which this run ends. shown: false for ranks that leave the output to the first.
  Progress(const training::Trainer& trainer, int64_t last_step, bool shown = true);
  // Call it after some steps. Redraws the bar, at most ten times a second, and prints the line of an ended epoch.
  void update();
  // Removes the bar, so that the next output begins on its own line.
  void clear();
  // Samples per second in this run, including evaluation and saving.
  double samples_per_second() const;
  double seconds() const;

 private:
  std::string bar_line(size_t columns) const;
  std::string epoch_line() const;

  const training::Trainer& trainer_;
  int64_t first_step_, last_step_, first_sample_;
  size_t epochs_printed_;
  bool terminal_, shown_, drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_drawn_;
};

}  // namespace plugrad::tool
