#include <backends/cpu/fuser.hpp>

#include <algorithm>
#include <span>

namespace plugrad::cpu {
namespace {

class Fuser {
 public:
  Fuser(const std::vector<FusionStep>& steps, const std::vector<FusionValue>& values, const std::vector<bool>& is_output,
        int vector_bytes)
      : steps_(steps), values_(values), is_output_(is_output), vector_bytes_(vector_bytes), maker_(values.size(), -1),
        reads_(values.size()) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool makes_totals = steps[i].kind == FusionStep::fold_columns || steps[i].kind == FusionStep::fold_all;
      for (size_t k = 0; k < steps[i].results && !makes_totals; ++k) maker_[steps[i].operands[k]] = static_cast<int>(i);
      for (size_t k = steps[i].results; k < steps[i].operands.size(); ++k) ++reads_[steps[i].operands[k]];
    }
  }

  std::vector<FusionStep> fuse() {
    for (size_t i = 0; i < steps_.size(); ++i) place(i);
    for (const Segment& each : segments_) {
      if (each.joins) emit(each.steps);
      else made_.push_back(steps_[each.steps[0]]);
    }
    return std::move(made_);
  }

 private:
  // Steps that run in sequence: several joinable steps, or a single step.
  struct Segment {
    bool joins;
    std::vector<size_t> steps;
  };

  bool is_comparison(size_t i) const { return values_[steps_[i].operands[0]].size == 1; }
  bool is_where(size_t i) const { return steps_[i].opcode == PLUGRAD_OP_WHERE; }
  uint8_t size_of(size_t i) const { return values_[steps_[i].operands.back()].size; }
  bool is_plain(size_t i) const {
    const FusionStep& step = steps_[i];
    return step.kind == FusionStep::elementwise && is_fusable(step.opcode) && step.is_floating && size_of(i) >= 4;
  }

  // A comparison joins if only WHERE reads it, and WHERE if such a comparison is its condition.
  bool joins(size_t i) const {
    if (!vector_bytes_ || !is_plain(i)) return false;
    if (is_where(i)) {
      const int maker = maker_[steps_[i].operands[1]];
      return maker >= 0 && is_plain(static_cast<size_t>(maker)) && is_comparison(static_cast<size_t>(maker)) &&
             only_where_reads(static_cast<size_t>(maker));
    }
    return !is_comparison(i) || only_where_reads(i);
  }
  bool only_where_reads(size_t comparison) const {
    const uint16_t value = steps_[comparison].operands[0];
    if (is_output_[value]) return false;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const std::vector<uint16_t>& operands = steps_[i].operands;
      const auto reads = std::count(operands.begin() + steps_[i].results, operands.end(), value);
      const bool as_condition = is_where(i) && is_plain(i) && operands[1] == value && reads == 1;
      const bool alike = size_of(i) == size_of(comparison) && steps_[i].over_rows == steps_[comparison].over_rows;
      if (reads && (!as_condition || !alike)) return false;
    }
    return true;
  }

  bool may_join(const Segment& segment, size_t i) const {
    const size_t first = segment.steps[0];
    return segment.joins && steps_[first].over_rows == steps_[i].over_rows && size_of(first) == size_of(i);
  }

  void place(size_t i) {
    size_t earliest = 0;
    for (size_t k = steps_[i].results; k < steps_[i].operands.size(); ++k)
      if (const int maker = maker_[steps_[i].operands[k]]; maker >= 0)
        earliest = std::max(earliest, segment_of_[static_cast<size_t>(maker)]);
    size_t to = segments_.size();
    const bool does_join = joins(i);
    for (size_t at = earliest; does_join && at < segments_.size() && to == segments_.size(); ++at)
      if (may_join(segments_[at], i)) to = at;
    if (to == segments_.size()) segments_.push_back({does_join, {}});
    segments_[to].steps.push_back(i);
    segment_of_.push_back(to);
  }

  // Joins the steps, or halves of them, as registers allow.
  void emit(std::span<const size_t> steps) {
    FusionStep made{.kind = FusionStep::elementwise};
    if (steps.size() > 1 && has_masks(steps) && join(steps, made)) return made_.push_back(std::move(made));
    if (steps.size() == 1 || !is_divisible(steps)) {
      for (const size_t i : steps) made_.push_back(steps_[i]);
      return;
    }
    emit(steps.first(steps.size() / 2));
    emit(steps.subspan(steps.size() / 2));
  }

  // Whether these steps have each comparison together with all WHERE steps that read it: masks stay in registers.
  bool has_masks(std::span<const size_t> steps) const {
    const auto contains = [&](size_t i) { return std::find(steps.begin(), steps.end(), i) != steps.end(); };
    for (const size_t i : steps) {
      if (is_where(i) && !contains(static_cast<size_t>(maker_[steps_[i].operands[1]]))) return false;
      for (size_t other = 0; is_comparison(i) && other < steps_.size(); ++other)
        if (is_where(other) && steps_[other].operands[1] == steps_[i].operands[0] && !contains(other)) return false;
    }
    return true;
  }
  bool is_divisible(std::span<const size_t> steps) const {
    return has_masks(steps.first(steps.size() / 2)) && has_masks(steps.subspan(steps.size() / 2));
  }

  bool join(std::span<const size_t> steps, FusionStep& made) const {
    FusedRun run{size_of(steps[0]) == 8, {}, {}, {}, {}};
    std::vector<size_t> inside(values_.size());
    std::vector<bool> is_made(values_.size()), is_seen(values_.size());
    for (const size_t i : steps) {
      run.ops.push_back({steps_[i].opcode, steps_[i].operands});
      is_made[steps_[i].operands[0]] = true;
      for (size_t k = 1; k < steps_[i].operands.size(); ++k) ++inside[steps_[i].operands[k]];
    }
    for (const size_t i : steps) {
      const uint16_t result = steps_[i].operands[0];
      if (is_output_[result] || reads_[result] > inside[result]) run.results.push_back(result);
      for (size_t k = 1; k < steps_[i].operands.size(); ++k) {
        const uint16_t value = steps_[i].operands[k];
        if (is_made[value] || is_seen[value]) continue;
        is_seen[value] = true;
        run.inputs.push_back(value);
        const Form form = values_[value].form;
        run.is_single.push_back(form == Form::number || (form == Form::row && !steps_[i].over_rows));
      }
    }
    if (run.results.empty() || run.results.size() + run.inputs.size() > kMaxStepOperands) return false;
    made.code = compile(run, vector_bytes_);
    if (!made.code.function) return false;
    made.over_rows = steps_[steps[0]].over_rows;
    made.function = made.code.function;
    made.results = static_cast<uint8_t>(run.results.size());
    made.operands = run.results;
    made.operands.insert(made.operands.end(), run.inputs.begin(), run.inputs.end());
    made.run = std::move(run);
    return true;
  }

  const std::vector<FusionStep>& steps_;
  const std::vector<FusionValue>& values_;
  const std::vector<bool>& is_output_;
  const int vector_bytes_;
  std::vector<int> maker_;     // by value: its step
  std::vector<size_t> reads_;  // by value
  std::vector<Segment> segments_;
  std::vector<size_t> segment_of_;  // by step
  std::vector<FusionStep> made_;
};

}  // namespace

std::vector<FusionStep> fused_steps(const std::vector<FusionStep>& steps, const std::vector<FusionValue>& values,
                                    const std::vector<bool>& is_output, int vector_bytes) {
  return Fuser(steps, values, is_output, vector_bytes).fuse();
}

}  // namespace plugrad::cpu
