// The numbers of a replay that change from step to step: random ones, and those of optimisers.
#include <core/steps/replay.hpp>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

namespace plugrad::steps {

void Replay::draw() {
  if (!trace_.draws) return;
  DeviceState& device = *trace_.device;
  const uint64_t first = drawn_ = device.offset.fetch_add(trace_.draws), seed = device.seed;
  for (const uint32_t call : draws_) {
    const size_t inputs = trace_.calls[call].op.outputs;
    plugrad_view* const* const views = pointers_.data() + operands_of_call_[call] + inputs;
    views[0]->offset = seed;
    views[1]->offset = first + (trace_.calls[call].views[inputs + 1].offset - trace_.first_draw);
    note_changed(item_of_call_[call]);
  }
}

void Replay::take_back_draws() {
  for (const uint32_t call : draws_) {
    if (item_of_call_[call] < reached_) continue;
    const size_t offset = trace_.calls[call].op.outputs + 1u;
    trace_.device->offset = drawn_ + (trace_.calls[call].views[offset].offset - trace_.first_draw);
    return;
  }
}

namespace {
// Shows the numbers of calls that do not run.
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

bool Replay::advance(size_t part) {
  RecordedPart& recorded = trace_.parts[part];
  const uint64_t numbers = recorded.part.advance();
  if (numbers == recorded.numbers) return true;
  recorded.numbers = numbers;
  if (renumber(recorded)) return true;
  recorded.part.undo();
  return false;
}

bool Replay::renumber(const RecordedPart& recorded) {
  uint32_t at = recorded.first;
  Renumbering shown([&](const plugrad_op& op) {
    if (at == recorded.last || !same_form(trace_.calls[at], op)) return false;
    Call& call = trace_.calls[at];
    const bool differs = op.attributes && std::memcmp(call.attributes.data(), op.attributes, call.attributes.size());
    if (differs && in_program(at)) return false;  // whose instructions have the attributes
    if (differs) std::memcpy(call.attributes.data(), op.attributes, call.attributes.size());
    for (size_t i = 0; i < call.views.size(); ++i) {
      if (!(op.views[i]->layout & PLUGRAD_IMMEDIATE)) continue;
      call.views[i].offset = op.views[i]->offset;
      if (operands_of_call_[at] != kNever) pointers_[operands_of_call_[at] + i]->offset = op.views[i]->offset;
      const auto number = numbers_.find({at, static_cast<uint32_t>(i)});
      if (number != numbers_.end()) number->second->offset = op.views[i]->offset;
    }
    note_changed(item_of_call_[at]);
    ++at;
    return true;
  });
  recorded.part.repeat();
  return shown.equal && at == recorded.last;
}

}  // namespace plugrad::steps
