// The changing numbers of a step: random numbers, and numbers of optimisers.
#include <core/steps/runner.hpp>

#include <core/runtime/generator.hpp>

#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

namespace plugrad::steps {

void Runner::draw() {
  if (!plan_.trace.draws) return;
  Generator& generator = generator_of(*plan_.trace.device);
  const uint64_t first = drawn_ = generator.offset.fetch_add(plan_.trace.draws), seed = generator.seed;
  for (const uint32_t call : draws_) {
    const size_t inputs = plan_.trace.calls[call].op.outputs;
    plugrad_view* const* const views = operands_.views(operands_of_call_[call]) + inputs;
    views[0]->offset = seed;
    views[1]->offset = first + (plan_.trace.calls[call].views[inputs + 1].offset - plan_.trace.first_draw);
    note_item(item_of_call_[call]);
  }
}

void Runner::take_back_draws() {
  for (const uint32_t call : draws_) {
    if (item_of_call_[call] < reached_) continue;
    const size_t offset = plan_.trace.calls[call].op.outputs + 1u;
    generator_of(*plan_.trace.device).offset =
        drawn_ + (plan_.trace.calls[call].views[offset].offset - plan_.trace.first_draw);
    return;
  }
}

namespace {
// Shows the numbers of calls, without running them.
class Renumbering final : public Observer {
 public:
  using Show = std::function<bool(const plugrad_op&)>;
  explicit Renumbering(Show show) : show_(std::move(show)) {}
  bool intercepts(const plugrad_op& op) override {
    equal = equal && show_(op);
    return true;
  }
  void ran(DeviceState&, const plugrad_kernel*, const plugrad_op&, Storage* const*, Storage*) override {}
  void allocated(Storage&) override {}
  void fail(const std::string&) override { equal = false; }
  void run_part(Part part) override { part.repeat(); }
  void run_host(std::shared_ptr<observe::HostCall>, DeviceState*, const plugrad_op&, Storage* const*) override {
    equal = false;
  }
  bool keeps_upload(Storage&) override { return false; }
  Magazine<Storage>* magazine(uint32_t) override { return nullptr; }
  bool equal = true;

 private:
  Show show_;
};

bool same_form(const Call& call, const plugrad_op& op) {
  if (call.op.opcode != op.opcode || call.op.outputs != op.outputs || call.op.inputs != op.inputs) return false;
  const size_t bytes = op.attributes ? *static_cast<const uint32_t*>(op.attributes) : 0;
  for (size_t i = 0; i < call.views.size(); ++i)
    if (call.views[i].dtype != op.views[i]->dtype || call.views[i].count != op.views[i]->count ||
        call.views[i].layout != op.views[i]->layout)
      return false;
  return call.attributes.size() == bytes;
}
}  // namespace

bool Runner::advance(size_t part) {
  RecordedPart& recorded = plan_.trace.parts[part];
  const uint64_t numbers = recorded.part.advance();
  if (numbers == recorded.numbers) return true;
  recorded.numbers = numbers;
  if (renumber(recorded)) return true;
  recorded.part.undo();
  return false;
}

bool Runner::is_in_fusion(uint32_t call) const {
  return item_of_call_[call] != kNever && items_[item_of_call_[call]].fusion != kNever;
}

void Runner::set_immediate(uint32_t call, uint32_t operand, uint64_t bits) {
  plan_.trace.calls[call].views[operand].offset = bits;
  if (operands_of_call_[call] != kNever) operands_.views(operands_of_call_[call])[operand]->offset = bits;
  const auto number = numbers_.find({call, operand});
  if (number != numbers_.end()) number->second->offset = bits;
}

void Runner::set_numbers(const std::vector<double>& numbers) {
  for (const LiftedOperand& each : plan_.trace.lifted) {
    set_immediate(each.call, each.operand, std::bit_cast<uint64_t>(numbers[each.source - 1]));
    if (item_of_call_[each.call] != kNever) note_item(item_of_call_[each.call]);
  }
}

bool Runner::renumber(const RecordedPart& recorded) {
  uint32_t at = recorded.first;
  Renumbering shown([&](const plugrad_op& op) {
    if (at == recorded.last || !same_form(plan_.trace.calls[at], op)) return false;
    Call& call = plan_.trace.calls[at];
    const bool differs = op.attributes && std::memcmp(call.attributes.data(), op.attributes, call.attributes.size()) != 0;
    if (differs && is_in_fusion(at)) return false;  // its instructions contain the attributes
    if (differs) std::memcpy(call.attributes.data(), op.attributes, call.attributes.size());
    for (size_t i = 0; i < call.views.size(); ++i) {
      if (op.views[i]->layout & PLUGRAD_IMMEDIATE) set_immediate(at, static_cast<uint32_t>(i), op.views[i]->offset);
    }
    note_item(item_of_call_[at]);
    ++at;
    return true;
  });
  recorded.part.repeat();
  return shown.equal && at == recorded.last;
}

}  // namespace plugrad::steps
