// The order of a fusion's values and reductions, needed to run the fusion as one kernel.
#pragma once
#include <plugrad/sdk/fusion.hpp>

#include <vector>

namespace plugrad::cuda {

class FusionShape {
 public:
  static constexpr size_t kMostReductions = 8;
  struct Reduction {
    uint32_t opcode;
    size_t argument, value;
  };

  explicit FusionShape(const plugrad_fusion& block);

  // Whether one kernel can run the fusion. It may have elementwise ops, copies, fills, conversions, updates, sums and
  // extremes. Its outputs are distinct, and whole or with one element per reduced line. Threads run its reductions together:
  // there are not too many, and they have the same axes, elements of equal size, and accumulators of equal size. If the
  // fusion goes on after its reductions, they reduce the last axis.
  bool can_be_written() const;

  const Fusion& fusion() const { return fusion_; }
  uint8_t dtype_of(size_t value) const { return fusion_.values()[value].dtype; }
  const std::vector<Reduction>& reductions() const { return reductions_; }
  // The number of a value's reduction, or -1.
  int reduction_of(size_t value) const { return made_by_[value]; }
  unsigned reduced_axes() const { return reductions_.empty() ? 0 : fusion_.values()[reductions_[0].value].axes; }
  bool is_whole(size_t value) const { return !fusion_.values()[value].axes; }

  // The number of successive reductions before a value is known. A kernel passes over a line once for each level of the
  // reductions' arguments.
  int level(size_t value) const { return levels_[value]; }
  int passes() const;
  // The pass that stores the whole outputs: the last pass with reductions if all whole outputs are known there. Otherwise it
  // is passes(), an extra pass without reductions.
  int storing_pass() const;
  // Whether the fusion computes values from results of reductions, or for each line.
  bool goes_on() const;

  // Whether the last axis is reduced: the elements of a pack then belong to one line.
  bool packs_along() const { return reduced_axes() >> (fusion_.rank() - 1) & 1; }
  size_t accumulator_size(const Reduction& reduction) const;

 private:
  bool is_written(const plugrad_fusion_instruction& each) const;
  bool fits_together(const Reduction& reduction) const;

  const Fusion fusion_;
  std::vector<Reduction> reductions_;
  std::vector<int> made_by_, levels_;  // by value
};

}  // namespace plugrad::cuda
