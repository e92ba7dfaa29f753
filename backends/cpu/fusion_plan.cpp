#include <backends/cpu/fuser.hpp>

#include <algorithm>
#include <cstring>

namespace plugrad::cpu {
namespace {

const KernelRow* row_for(const RowList& rows, const plugrad_signature& signature) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const KernelRow& row) { return row.serves(signature); });
  return found == rows.end() || !found->own ? nullptr : &*found;
}

class Planner {
 public:
  Planner(const Fusion& fusion, const RowList& rows, int vector_bytes) : fusion_(fusion), rows_(rows) {
    plan_.vector_bytes = vector_bytes;
  }

  std::optional<FusionPlan> plan() {
    for (const plugrad_fusion_value& each : fusion_.values()) {
      const std::optional<Form> form = form_of(each.axes);
      if (!form) return {};
      plan_.values.push_back({static_cast<uint8_t>(element_size(each.dtype)), *form});
    }
    for (size_t i = 0; i < fusion_.inputs(); ++i) plan_.values[i].input = static_cast<int>(i);
    size_t made = fusion_.inputs();
    for (const plugrad_fusion_instruction& each : fusion_.instructions()) {
      if (!add(each, made)) return {};
      made += each.results;
    }
    std::vector<bool> is_output(plan_.values.size());
    for (const plugrad_fusion_output& each : fusion_.outputs()) is_output[each.value] = true;
    for (FusionStep& each : fused_steps(plan_.steps, plan_.values, is_output, plan_.vector_bytes)) finish(std::move(each));
    plan_.steps = std::move(finished_);
    if (!place_outputs()) return {};
    place_buffers();
    return std::move(plan_);
  }

 private:
  // Inputs that repeat only along some of the outer axes are full, with strides of 0 along these axes.
  std::optional<Form> form_of(unsigned axes) const {
    const unsigned last = 1u << (fusion_.rank() - 1), outer = last - 1;
    if (axes == fusion_.all_axes()) return Form::number;
    if (axes & last) return axes == last ? std::optional(Form::row) : std::nullopt;
    return axes == outer && outer ? Form::column : Form::full;
  }

  bool add(const plugrad_fusion_instruction& i, size_t made) {
    const OpInfo& op = *op_info(i.opcode);
    const KernelRow* const row = row_for(rows_, fusion_.signature_of(i, made, kPlainFlags));
    if (!row) return false;
    if (op.shape == OpShape::update) return add_update(i, *static_cast<const Update*>(row->own), made);
    if (i.results != 1) return false;
    const auto arguments = fusion_.arguments_of(i);
    if (op.shape == OpShape::reduction) return add_fold(*static_cast<const Reduction*>(row->own), arguments[0], made);
    if (op.opcode == PLUGRAD_OP_POW) {
      if (arguments[1] >= fusion_.inputs() || plan_.values[arguments[1]].form != Form::number) return false;
      plan_.exponents.push_back({arguments[1]});
    }
    FusionStep step{.kind = FusionStep::elementwise};
    const Form form = plan_.values[made].form;
    if (form != Form::full && form != Form::row) return false;
    step.over_rows = form == Form::row;
    plan_.has_rows = plan_.has_rows || step.over_rows;
    step.operands.push_back(static_cast<uint16_t>(made));
    step.operands.insert(step.operands.end(), arguments.begin(), arguments.end());
    step.opcode = i.opcode;
    step.row = static_cast<const Elementwise*>(row->own);
    const uint8_t dtype = fusion_.values()[arguments.back()].dtype;
    step.is_floating = dtype == PLUGRAD_F32 || dtype == PLUGRAD_F64;
    plan_.steps.push_back(std::move(step));
    plan_.values[made].is_made = true;
    return true;
  }

  bool add_update(const plugrad_fusion_instruction& i, const Update& rule, size_t made) {
    FusionStep step{.kind = FusionStep::update, .number = updates_++, .rule = &rule, .results = i.results};
    const void* const attributes = fusion_.attributes_of(i);
    if (attributes) {
      const auto size = *static_cast<const uint32_t*>(attributes);
      step.attributes.resize((size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
      std::memcpy(step.attributes.data(), attributes, size);
    }
    for (size_t k = made; k < made + i.results; ++k) {
      if (plan_.values[k].form != Form::full) return false;
      step.operands.push_back(static_cast<uint16_t>(k));
      plan_.values[k].is_made = true;
    }
    const auto arguments = fusion_.arguments_of(i);
    step.operands.insert(step.operands.end(), arguments.begin(), arguments.end());
    step.function = rule.kind(attributes).rows[0];
    plan_.steps.push_back(std::move(step));
    return true;
  }

  void finish(FusionStep&& step) {
    if (step.kind == FusionStep::elementwise && !step.function) choose_row(step);
    if (step.kind == FusionStep::update) {
      uint16_t& gradient = step.operands[2u * step.results];
      if (is_single(step, gradient)) repeat(step, gradient);
    }
    finished_.push_back(std::move(step));
  }

  bool is_single(const FusionStep& step, uint16_t value) const {
    const Form form = plan_.values[value].form;
    return form == Form::number || (form == Form::row && !step.over_rows);
  }

  // If the op has no function for an operand of one element, the operand is first repeated.
  void choose_row(FusionStep& step) {
    for (;;) {
      unsigned singles = 0;
      for (size_t k = 1; k < step.operands.size(); ++k)
        singles |= static_cast<unsigned>(is_single(step, step.operands[k])) << (k - 1);
      step.function = step.row->rows[singles];
      if (step.function) return;
      const size_t first = 1 + static_cast<size_t>(__builtin_ctz(singles));
      repeat(step, step.operands[first]);
    }
  }

  void repeat(const FusionStep& step, uint16_t& value) {
    const uint8_t size = plan_.values[value].size;
    const uint8_t dtype = size == 1 ? PLUGRAD_BOOL : size == 2 ? PLUGRAD_BF16 : size == 4 ? PLUGRAD_F32 : PLUGRAD_F64;
    const plugrad_signature fill{sizeof fill, PLUGRAD_OP_FILL, 0, 0, 1, 1, {dtype, dtype}, nullptr};
    FusionStep made{.kind = FusionStep::elementwise, .over_rows = step.over_rows};
    made.function = static_cast<const Elementwise*>(row_for(rows_, fill)->own)->rows[1];
    made.operands = {static_cast<uint16_t>(plan_.values.size()), value};
    value = made.operands[0];
    plan_.values.push_back({.size = size, .form = step.over_rows ? Form::row : Form::full, .is_made = true});
    finished_.push_back(std::move(made));
  }

  bool add_fold(const Reduction& kind, uint16_t from, size_t made) {
    const Form form = plan_.values[made].form;
    if (!kind.block || plan_.values[from].form != Form::full || fusion_.values()[from].axes) return false;
    FusionStep step{.kind = FusionStep::fold_row, .reduction = &kind};
    step.operands = {static_cast<uint16_t>(made), from};
    if (form == Form::row) {
      plan_.has_rows = true;
      plan_.values[made].is_made = true;
    } else if (form == Form::column || form == Form::number) {
      const std::optional<uint16_t> output = only_output(made);
      if (!output) return false;
      auto& folds = form == Form::column ? plan_.columns : plan_.all;
      step.kind = form == Form::column ? FusionStep::fold_columns : FusionStep::fold_all;
      step.number = static_cast<int>(folds.size());
      folds.push_back({&kind, *output});
    } else {
      return false;
    }
    plan_.steps.push_back(std::move(step));
    return true;
  }

  // Returns a value's output, if no instruction reads the value.
  std::optional<uint16_t> only_output(size_t value) const {
    for (const plugrad_fusion_instruction& each : fusion_.instructions())
      for (const uint16_t argument : fusion_.arguments_of(each))
        if (argument == value) return {};
    std::optional<uint16_t> found;
    for (uint16_t k = 0; k < fusion_.outputs().size(); ++k) {
      if (fusion_.outputs()[k].value != value) continue;
      if (found) return {};
      found = k;
    }
    return found;
  }

  // Computes a value in its output's memory, unless a later step reads the input in this memory, or an update reads the
  // input after it has replaced it.
  bool place_outputs() {
    for (uint16_t k = 0; k < fusion_.outputs().size(); ++k) {
      const auto [value, over] = fusion_.outputs()[k];
      FusionValue& it = plan_.values[value];
      if (it.form == Form::column || it.form == Form::number) continue;  // made when all tiles are done
      if (!it.is_made) return false;
      if (it.output < 0 && (over == PLUGRAD_FUSION_NONE || !is_read_after(over, value))) {
        it.output = k;
        it.replaces = over != PLUGRAD_FUSION_NONE;
        continue;
      }
      FusionStep step{.kind = FusionStep::copy, .over_rows = it.form == Form::row};
      step.operands = {static_cast<uint16_t>(plan_.values.size()), value};
      plan_.values.push_back({.size = it.size, .form = plan_.values[value].form, .output = k, .is_made = true});
      plan_.steps.push_back(std::move(step));
    }
    return true;
  }

  bool is_read_after(uint16_t input, uint16_t value) const {
    bool is_made = false;
    for (const FusionStep& each : plan_.steps) {
      const auto results = each.operands.begin() + each.results;
      if (is_made && std::find(results, each.operands.end(), input) != each.operands.end()) return true;
      const auto made = std::find(each.operands.begin(), results, value);
      if (made == results) continue;
      is_made = true;
      for (auto k = results; each.kind == FusionStep::update && k != each.operands.end(); ++k)
        if (*k == input && k - results != made - each.operands.begin()) return true;
    }
    return false;
  }

  // Values outside of operands share buffers: a buffer is free again after the last step that reads it.
  void place_buffers() {
    std::vector<size_t> last(plan_.values.size());
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      for (const uint16_t value : plan_.steps[i].operands) last[value] = i;
    std::vector<int> free;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const uint16_t value : plan_.steps[i].operands) {
        FusionValue& it = plan_.values[value];
        if (it.is_made && it.output < 0 && it.buffer < 0) it.buffer = take(it, free);
      }
      // A fused step may store a result before it has read all of an operand.
      for (const uint16_t value : plan_.steps[i].operands)
        if (plan_.values[value].buffer >= 0 && last[value] == i) {
          free.push_back(plan_.values[value].buffer);
          last[value] = SIZE_MAX;  // it may be two operands
        }
    }
  }

  int take(const FusionValue& value, std::vector<int>& free) {
    const bool is_full = value.form == Form::full;
    for (auto each = free.begin(); each != free.end(); ++each) {
      const auto at = static_cast<size_t>(*each);
      if (plan_.buffer_sizes[at] != value.size || plan_.buffer_is_full[at] != is_full) continue;
      const int found = *each;
      free.erase(each);
      return found;
    }
    plan_.buffer_sizes.push_back(value.size);
    plan_.buffer_is_full.push_back(is_full);
    return plan_.buffers++;
  }

  const Fusion& fusion_;
  const RowList& rows_;
  FusionPlan plan_;
  std::vector<FusionStep> finished_;
  int updates_ = 0;
};

}  // namespace

std::optional<FusionPlan> plan_of(const Fusion& fusion, const RowList& rows, int vector_bytes) {
  return Planner(fusion, rows, vector_bytes).plan();
}

}  // namespace plugrad::cpu
