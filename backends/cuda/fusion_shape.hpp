// What a fusion needs to run as one kernel: which values come before and after which reductions.
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

  // Whether it has only elementwise ops, copies, fills, conversions, updates, sums and extremes, outputs that differ and are
  // whole or have one element for each line that is reduced, and reductions that threads can run together: over the same
  // axes, of elements of one size, with accumulators of one size, and not too many.
  bool can_be_written() const;

  const Fusion& fusion() const { return fusion_; }
  uint8_t dtype_of(size_t value) const { return fusion_.values()[value].dtype; }
  const std::vector<Reduction>& reductions() const { return reductions_; }
  // The number of the reduction that makes a value, or -1.
  int reduction_of(size_t value) const { return made_by_[value]; }
  unsigned reduced_axes() const { return reductions_.empty() ? 0 : fusion_.values()[reductions_[0].value].axes; }
  bool is_whole(size_t value) const { return !fusion_.values()[value].axes; }

  // How many reductions follow each other before a value is known. A kernel passes over a line once for each level of the
  // reductions' arguments.
  int level(size_t value) const { return levels_[value]; }
  int passes() const;
  // The pass in which all whole outputs are known, and stored. passes(): one more, in which nothing is reduced.
  int storing_pass() const;
  // Whether it computes anything of what reductions make, or for each line.
  bool goes_on() const;

  // Whether the last axis is reduced, so that the elements of a pack are of one line.
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
