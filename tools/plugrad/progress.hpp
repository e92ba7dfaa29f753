// How far a training run is: a bar on a terminal, a line per epoch elsewhere. To stderr.
#pragma once
#include <tools/train/trainer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace plugrad::tool {

class Progress {
 public:
  // last_step: where this run will end.
  Progress(const training::Trainer& trainer, int64_t last_step);
  // After some steps. Draws the bar anew, at most ten times a second, and prints the line of an epoch that ended.
  void update();
  // Removes the bar: what is printed next begins a line of its own.
  void clear();
  // Samples of this run per second of it, evaluation and saving included.
  double samples_per_second() const;
  double seconds() const;

 private:
  std::string bar_line(size_t columns) const;
  std::string epoch_line() const;

  const training::Trainer& trainer_;
  int64_t first_step_, last_step_, first_sample_;
  size_t epochs_printed_;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_drawn_;
};

}  // namespace plugrad::tool
