#include <core/runtime/observe/shadow.hpp>

#include <core/runtime/observe/case_file.hpp>
#include <core/runtime/observe/observer.hpp>
#include <core/runtime/plugins/agreement.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <plugrad/runtime/device.hpp>

namespace plugrad::shadow {
namespace {
std::string& name() {
  static std::string& text = *new std::string;
  return text;
}

// While true, this thread runs ops for a comparison; they are not compared again.
thread_local bool comparing = false;
struct Comparing {
  Comparing() { comparing = true; }
  ~Comparing() { comparing = false; }
};

DeviceState& host() {
  const Device device(name());
  DeviceState& state = device.state();
  if (!state.host_memory() || state.compute)
    throw Error(Code::invalid, "PLUGRAD_SHADOW='" + name() +
                                   "': a device with memory of the host and without streams expected, such as reference");
  return state;
}
}  // namespace

void start() {
  static const bool started = [] {
    const char* text = platform::environment("PLUGRAD_SHADOW");
    if (!text || !*text) return false;
    name() = text;
    on = true;
    observe::update();
    return true;
  }();
  static_cast<void>(started);
}

bool Run::reads(int operand) const { return operand >= call_.outputs || is_in_out(call_.opcode, operand); }

Run::Run(DeviceState& device, const OpCall& call) : device_(device), call_(call) {
  if (comparing) return;
  const Comparing guard;
  DeviceState& shadow = host();
  if (&shadow == &device) return;
  host_ = &shadow;
  for (int i = 0; i < call.operands(); ++i) {
    if (call.views[i]->layout & PLUGRAD_IMMEDIATE) continue;
    there_[i].emplace(shadow, *call.views[i], *call.storages[i], reads(i));
    if (i < call.outputs && reads(i)) before_[i].emplace(shadow, *call.views[i], *call.storages[i], true);
  }
}

void Run::compare() {
  if (!host_) return;
  const Comparing guard;
  const plugrad_view* views[PLUGRAD_MAX_OPERANDS];
  Storage* storages[PLUGRAD_MAX_OPERANDS];
  uint16_t layout = 0;
  for (int i = 0; i < call_.operands(); ++i) {
    views[i] = there_[i] ? &there_[i]->view() : call_.views[i];
    storages[i] = there_[i] ? there_[i]->storage() : nullptr;
    layout |= views[i]->layout;
  }
  OpCall moved = call_;
  moved.views = views;
  moved.storages = storages;
  if (!run_general(*host_, moved, layout)) return;  // the shadow device lacks the op
  for (int i = 0; i < call_.outputs; ++i) compare_output(i, moved);
}

void Run::compare_output(int output, const OpCall& moved) {
  const HostCopy got(*host_, *call_.views[output], *call_.storages[output], true);
  if (const std::string how = difference(moved, output, got.view()); !how.empty()) diverged(output, how);
}

void Run::diverged(int output, const std::string& how) {
  std::string operands;
  for (int i = 0; i < call_.operands(); ++i)
    operands += (i ? i == call_.outputs ? " <- " : ", " : "") + text_of_operand(*call_.views[i]);
  const std::string file = written_case();
  throw Error(Code::internal, "[" + op_label(call_.opcode) + "] " + device_.name + " and " + host_->name +
                                  " differ in output " + std::to_string(output) + ": " + how + ". The call is " + operands +
                                  (file.empty() ? "" : "; plugrad-conform --replay " + file + " PLUGIN runs it alone"));
}

std::string Run::written_case() const {
  CaseFile file(op_name(call_.opcode), kernel_modes(), call_.attributes);
  for (int i = 0; i < call_.operands(); ++i) {
    const HostCopy* visitor = i < call_.outputs && before_[i] ? &*before_[i] : there_[i] ? &*there_[i] : nullptr;
    file.add(*call_.views[i], visitor && reads(i) ? &visitor->view() : nullptr);
  }
  for (int i = call_.outputs; i < call_.operands(); ++i) {
    const plugrad_view &output = *call_.views[0], &input = *call_.views[i];
    if (!there_[i] || input.buffer != output.buffer || input.offset != output.offset) continue;
    file.set_in_place(i - call_.outputs);
    break;
  }
  return file.write();
}

}  // namespace plugrad::shadow
