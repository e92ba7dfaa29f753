#include <backends/cuda/fusion_shape.hpp>

#include <backends/cuda/accumulator.hpp>

#include <algorithm>

namespace plugrad::cuda {
namespace {

bool reduces(const plugrad_fusion_instruction& each) { return op_info(each.opcode)->shape == OpShape::reduction; }

}  // namespace

FusionShape::FusionShape(const plugrad_fusion& block)
    : fusion_(block), made_by_(fusion_.values().size(), -1), levels_(fusion_.values().size(), 0) {
  size_t made = fusion_.inputs();
  for (const plugrad_fusion_instruction& each : fusion_.instructions()) {
    int level = 0;
    for (const uint16_t argument : fusion_.arguments_of(each)) level = std::max(level, levels_[argument]);
    if (reduces(each)) {
      made_by_[made] = static_cast<int>(reductions_.size());
      reductions_.push_back({each.opcode, fusion_.arguments_of(each)[0], made});
      ++level;
    }
    for (size_t k = 0; k < each.results; ++k) levels_[made++] = level;
  }
}

size_t FusionShape::accumulator_size(const Reduction& reduction) const {
  size_t size = 0;
  with_element_type(dtype_of(reduction.value), [&]<class T>(T) { size = sizeof(AccumulatorOf<T>); });
  return size;
}

int FusionShape::passes() const {
  int passes = 0;
  for (const Reduction& each : reductions_) passes = std::max(passes, levels_[each.argument] + 1);
  return passes;
}

int FusionShape::storing_pass() const {
  int pass = passes() - 1;
  for (const plugrad_fusion_output& each : fusion_.outputs())
    if (is_whole(each.value)) pass = std::max(pass, levels_[each.value]);
  return pass;
}

bool FusionShape::goes_on() const {
  if (reductions_.empty()) return false;
  for (size_t v = fusion_.inputs(); v < levels_.size(); ++v)
    if ((levels_[v] || !is_whole(v)) && made_by_[v] < 0) return true;
  return passes() > 1;
}

bool FusionShape::is_written(const plugrad_fusion_instruction& each) const {
  const OpShape shape = op_info(each.opcode)->shape;
  const bool computes = shape == OpShape::elementwise || shape == OpShape::copy || shape == OpShape::update;
  return computes || reduces(each) || each.opcode == PLUGRAD_OP_FILL;
}

bool FusionShape::fits_together(const Reduction& reduction) const {
  const Reduction& first = reductions_[0];
  return is_whole(reduction.argument) && fusion_.values()[reduction.value].axes == reduced_axes() &&
         element_size(dtype_of(reduction.argument)) == element_size(dtype_of(first.argument)) &&
         accumulator_size(reduction) == accumulator_size(first) &&
         accumulator_size(reduction) % sizeof(int) == 0;  // warps exchange words
}

bool FusionShape::can_be_written() const {
  const auto can_be_stored = [&](const plugrad_fusion_output& each) {
    const unsigned axes = fusion_.values()[each.value].axes;
    const auto is_it = [&](const plugrad_fusion_output& other) { return other.value == each.value; };
    return (!axes || axes == reduced_axes()) && std::ranges::count_if(fusion_.outputs(), is_it) == 1;
  };
  return reductions_.size() <= kMostReductions &&
         std::ranges::all_of(fusion_.instructions(), [&](const auto& each) { return is_written(each); }) &&
         std::ranges::all_of(reductions_, [&](const Reduction& each) { return fits_together(each); }) &&
         std::ranges::all_of(fusion_.outputs(), can_be_stored) && (!goes_on() || packs_along());
}

}  // namespace plugrad::cuda
