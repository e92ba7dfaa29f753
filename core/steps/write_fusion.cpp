// Writes a group of calls as a fusion.
#include <core/steps/fusions.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <plugrad/sdk/fusion_block.hpp>

#include <algorithm>
#include <map>
#include <span>

namespace plugrad::steps {
namespace {

class Writer {
 public:
  Writer(const Group& group, const Surroundings& around) : group_(group), around_(around) {}

  std::optional<FusionCall> write() {
    for (const Instruction& each : group_.instructions()) add(each);
    for (const auto& [memory, key] : written_)
      if (around_.stays(memory)) outputs_.push_back({current_.at(memory), input_in(memory)});
    const bool is_empty = std::ranges::none_of(inputs_, [](const Input& each) { return each.key.memory != kNever; });
    if (outputs_.empty()) return {};
    for (const Beside& each : beside_) outputs_.push_back({each.value, PLUGRAD_FUSION_NONE});
    if (is_empty || inputs_.size() + outputs_.size() > PLUGRAD_FUSION_OPERANDS) return {};
    number_values();
    merge_axes();
    FusionCall made;
    made.numbers = std::move(numbers_);
    fill_call(made.call);
    made.text = text();
    return made;
  }

 private:
  struct Input {
    Key key;
    plugrad_view view;
    bool is_fixed;  // an immediate that never changes
    bool of_head = false;
  };
  // A further result of the head.
  struct Beside {
    uint16_t value;
    plugrad_view view;
    uint32_t memory;
  };
  // A value by its place: inputs first, then results. Until all inputs are known, a result is kResults and its number.
  static constexpr uint16_t kResults = 0x8000;
  struct Line {
    uint32_t opcode;
    std::vector<uint16_t> arguments;
    std::vector<Key> results;
    const std::vector<std::byte>* attributes;
  };

  const Call& call_of(const Instruction& i) const { return around_.trace.calls[i.call]; }

  void add_head(const Instruction& i) {
    const Call& call = call_of(i);
    Line line{call.op.opcode, {}, {}, &call.attributes};
    for (size_t k = 0; k < i.keys.size(); ++k) {
      if (call.writes(k)) {
        const auto value = static_cast<uint16_t>(kResults + results_++);
        if (k == 0) current_[i.keys[k].memory] = value;
        else beside_.push_back({value, call.views[k], i.keys[k].memory});
        line.results.push_back(i.keys[k]);
        continue;
      }
      const auto input = static_cast<uint32_t>(inputs_.size());
      line.arguments.push_back(static_cast<uint16_t>(input));
      inputs_.push_back({i.keys[k], call.views[k], false, true});
      if (i.keys[k].memory == kNever && around_.renumbered[i.call])
        numbers_.push_back({i.call, static_cast<uint32_t>(k), input});
    }
    written_.emplace(i.keys[0].memory, i.keys[0]);
    lines_.push_back(std::move(line));
  }

  void add(const Instruction& i) {
    if (i.is_head) return add_head(i);
    const Call& call = call_of(i);
    const OpInfo& op = *op_info(call.op.opcode);
    Line line{op.opcode, {}, {}, &call.attributes};
    for (size_t k = 0; k < i.keys.size(); ++k)
      if (op.shape == OpShape::update || !call.writes(k)) line.arguments.push_back(value_of(i, k));
    for (size_t k = 0; k < call.op.outputs; ++k) {
      current_[i.keys[k].memory] = static_cast<uint16_t>(kResults + results_++);
      written_.insert_or_assign(i.keys[k].memory, i.keys[k]);
      line.results.push_back(i.keys[k]);
    }
    lines_.push_back(std::move(line));
  }

  uint16_t value_of(const Instruction& i, size_t operand) {
    const Key& key = i.keys[operand];
    const plugrad_view& view = call_of(i).views[operand];
    if (key.memory == kNever) return number(i, operand, view);
    if (const auto made = current_.find(key.memory); made != current_.end()) return made->second;
    for (size_t k = 0; k < inputs_.size(); ++k)
      if (inputs_[k].key == key && !inputs_[k].of_head) return static_cast<uint16_t>(k);
    inputs_.push_back({key, view, false});
    return static_cast<uint16_t>(inputs_.size() - 1);
  }

  uint16_t number(const Instruction& i, size_t operand, const plugrad_view& view) {
    const bool is_fixed = !around_.renumbered[i.call];
    for (size_t k = 0; k < inputs_.size() && is_fixed; ++k)
      if (inputs_[k].is_fixed && inputs_[k].view.dtype == view.dtype && inputs_[k].view.offset == view.offset)
        return static_cast<uint16_t>(k);
    inputs_.push_back({{kNever, view.dtype, 0, {}}, view, is_fixed});
    const auto input = static_cast<uint32_t>(inputs_.size() - 1);
    if (!is_fixed) numbers_.push_back({i.call, static_cast<uint32_t>(operand), input});
    return static_cast<uint16_t>(input);
  }

  uint16_t input_in(uint32_t memory) const {
    for (size_t k = 0; k < inputs_.size(); ++k)
      if (inputs_[k].key.memory == memory && !inputs_[k].of_head) return static_cast<uint16_t>(k);
    return PLUGRAD_FUSION_NONE;
  }

  void number_values() {
    const auto renumber = [&](uint16_t& value) {
      if (value & kResults) value = static_cast<uint16_t>(value - kResults + inputs_.size());
    };
    for (Line& line : lines_) std::ranges::for_each(line.arguments, renumber);
    for (plugrad_fusion_output& each : outputs_) renumber(each.value);
  }

  // Joins neighbouring axes if they form a single axis in all values.
  void merge_axes() {
    const Space& space = group_.space();
    const auto joins = [&](int d, const Key& key) {
      return key.strides[d] == key.strides[d + 1] * space.extents[d + 1] && !key.strides[d] == !key.strides[d + 1];
    };
    for (int d = space.rank; d-- > 0;) {
      bool all = d + 1 < space.rank;
      for (const Instruction& i : group_.instructions())
        for (const Key& key : std::span(i.keys).first(i.is_head ? 1 : i.keys.size())) all = all && joins(d, key);
      if (!all) last_axes_.insert(last_axes_.begin(), d), extents_.insert(extents_.begin(), space.extents[d]);
      else extents_.front() *= space.extents[d];
    }
  }

  uint8_t axes_of(const Key& key) const {
    unsigned axes = 0;
    for (size_t d = 0; d < last_axes_.size(); ++d) axes |= static_cast<unsigned>(!key.strides[last_axes_[d]]) << d;
    return static_cast<uint8_t>(axes);
  }

  plugrad_view view_for(const plugrad_view& recorded, const Key& key, bool is_output) const {
    if (key.memory == kNever) return recorded;
    plugrad_view v = recorded;
    v.rank = static_cast<uint8_t>(last_axes_.size());
    v.count = 1;
    v.layout &= PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
    for (int d = v.rank; d-- > 0;) {
      const int64_t stride = key.strides[last_axes_[d]];
      v.shape[d] = is_output && !stride ? 1 : extents_[d];
      v.strides[d] = is_output && !stride ? v.count : stride;
      if (stride != v.count && !is_output) v.layout |= PLUGRAD_STRIDED;
      if (!stride && !is_output) v.layout |= PLUGRAD_STRIDED | PLUGRAD_BROADCAST;
      v.count *= v.shape[d];
    }
    if (v.count > INT32_MAX) v.layout |= PLUGRAD_WIDE_INDEX;
    return v;
  }

  void fill_call(Call& call) {
    call.kernel = nullptr;
    call.op = {sizeof(plugrad_op),
               PLUGRAD_FUSION,
               0,
               nullptr,
               nullptr,
               static_cast<uint16_t>(outputs_.size()),
               static_cast<uint16_t>(inputs_.size()),
               call_of(group_.instructions()[0]).op.flags,
               nullptr,
               0,
               0};
    for (const auto& [memory, key] : written_) {
      if (!around_.stays(memory)) continue;
      call.views.push_back(view_for(view_of(memory), key, true));
      call.memories.push_back(memory);
    }
    for (const Beside& each : beside_) {
      call.views.push_back(each.view);
      call.memories.push_back(each.memory);
    }
    for (const Input& each : inputs_) {
      call.views.push_back(each.of_head ? each.view : view_for(each.view, each.key, false));
      call.memories.push_back(each.key.memory);
    }
    call.attributes = block();
    call.gradient_of = call_of(group_.instructions()[0]).gradient_of;
  }

  // Returns the memory's view as the group wrote it.
  const plugrad_view& view_of(uint32_t memory) const {
    for (const Instruction& i : group_.instructions())
      for (size_t k = 0; k < call_of(i).op.outputs; ++k)
        if (i.keys[k].memory == memory) return call_of(i).views[k];
    return call_of(group_.instructions()[0]).views[0];
  }

  std::vector<std::byte> block() const {
    FusionParts parts{static_cast<uint16_t>(last_axes_.size()), static_cast<uint16_t>(inputs_.size()), {}, {}, outputs_};
    for (const Input& each : inputs_)
      parts.values.push_back({each.key.dtype, each.of_head ? uint8_t{0} : axes_of(each.key)});
    for (const Line& line : lines_) {
      parts.lines.push_back({line.opcode, line.arguments, static_cast<uint8_t>(line.results.size()), *line.attributes});
      const bool is_head = head_content(line.opcode);
      for (const Key& key : line.results) parts.values.push_back({key.dtype, is_head ? uint8_t{0} : axes_of(key)});
    }
    const std::vector<uint64_t> words = packed(parts);
    const auto* const first = reinterpret_cast<const std::byte*>(words.data());
    return {first, first + words.size() * sizeof words[0]};
  }

  std::string text() const {
    std::string text;
    for (size_t i = 0; i < lines_.size(); ++i)
      text += (i == 0 ? "" : i + 1 == lines_.size() ? " and " : ", ") + op_label(lines_[i].opcode);
    return text + " over " + group_.space().text();
  }

  const Group& group_;
  const Surroundings& around_;
  std::vector<Input> inputs_;
  std::vector<Line> lines_;
  std::vector<plugrad_fusion_output> outputs_;
  std::vector<Beside> beside_;
  std::vector<FusionCall::Number> numbers_;
  std::map<uint32_t, uint16_t> current_;  // by memory: its current value
  std::map<uint32_t, Key> written_;
  size_t results_ = 0;
  std::vector<int> last_axes_;  // the last of the space's axes in each of the fusion's
  std::vector<int64_t> extents_;
};

}  // namespace

std::optional<FusionCall> write_fusion(const Group& group, const Surroundings& around) {
  return Writer(group, around).write();
}

}  // namespace plugrad::steps
