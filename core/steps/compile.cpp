#include <plugrad/steps/compile.hpp>

#include <core/autograd/autocast.hpp>
#include <core/autograd/rule.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <core/steps/recordings.hpp>
#include <plugrad/runtime/cancel.hpp>
#include <plugrad/runtime/log.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace plugrad {
namespace {
using Tensors = std::vector<Tensor>;
constexpr uint64_t kCheckEvery = 16;
constexpr uint64_t kManyLost = 16;  // lost recordings for a warning, if they outnumber the replays
constexpr size_t kManyFlaws = 1000;
constexpr int kAttempts = 3;  // flawed recordings in a row, for the same arguments

enum class Capture { on, check, off };

Capture asked_for() {
  static const Capture asked = [] {
    const char* text = platform::environment("PLUGRAD_CAPTURE");
    const std::string_view value = text ? text : "on";
    if (value == "on" || value.empty()) return Capture::on;
    if (value == "check") return Capture::check;
    if (value == "off") return Capture::off;
    throw Error(Code::invalid, "PLUGRAD_CAPTURE='" + std::string(value) + "': on, check or off expected");
  }();
  return asked;
}

// Observers of each op need the function's own run.
bool is_looked_at() {
  const bool by_autograd = local().mode & (kRetaining | kDetecting | kDetectingForward | kCheckpointing);
  return by_autograd || observe::needs_each_op();  // kTracking may outlive its recording
}

// --- The keys of recordings.

// Writes to a string, and reuses its memory from call to call.
class Key {
 public:
  explicit Key(std::string& text) : text_(text) { text_.clear(); }
  void add(std::span<const uint64_t> words) {
    text_.append(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  }
  void add(uint64_t word) { add(std::span(&word, 1)); }
  void add(std::string_view text) {
    add(text.size());
    text_ += text;
  }

 private:
  std::string& text_;
};

uint64_t word_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// Adds the place of an argument relative to an earlier argument with the same storage.
void add_sharing(Key& key, const Tensor& x, const Tensors& arguments, size_t at) {
  for (size_t other = 0; other < at; ++other) {
    if (storage_of(arguments[other]) != storage_of(x)) continue;
    key.add(other);
    key.add(static_cast<uint64_t>(view_of(x).offset - view_of(arguments[other]).offset));
    return;
  }
}

// A dense copy, outside the graph.
Tensor dense_copy(const Tensor& x) {
  Tensor out = empty_like(Op::COPY, device_of(x), view_of(x), dtype_of(x));
  if (view_of(x).count) run(Op::COPY, {out}, {x});
  return out;
}

bool is_unaligned(const Tensor& x) { return view_of(x).layout & PLUGRAD_UNALIGNED; }

enum class Alignments { told, left_out };

void add_argument(Key& key, const Tensor& x, const Tensors& arguments, size_t at, Alignments alignments) {
  const plugrad_view& v = view_of(x);
  const DeviceState& device = device_of(x);
  const Node* const node = x.impl().node.get();
  uint64_t words[4 + 2 * PLUGRAD_MAX_RANK];
  size_t count = 0;
  words[count++] = word_of(&device);
  // A node without a requested gradient counts by its position alone. No node has the address 1.
  words[count++] = !node ? 0 : node->flags & Node::kUnasked ? 1 : word_of(node);
  const bool told = alignments == Alignments::told;
  const uint64_t layout = told ? v.layout : v.layout & ~uint64_t{PLUGRAD_UNALIGNED};
  words[count++] = v.dtype | static_cast<uint64_t>(v.rank) << 8 | layout << 32;
  words[count++] = told ? v.offset & (device.info.alignment - 1) : 0;
  for (int i = 0; i < v.rank; ++i) {
    words[count++] = static_cast<uint64_t>(v.shape[i]);
    words[count++] = v.shape[i] > 1 ? static_cast<uint64_t>(v.strides[i]) : 0;
  }
  key.add(std::span(words, count));
  add_sharing(key, x, arguments, at);
}

void write_key(std::string& text, const Tensors& arguments, std::string_view constants,
               Alignments alignments = Alignments::told) {
  Key key(text);
  key.add(constants);
  key.add(local().mode & ~static_cast<uint32_t>(kTracking));
  key.add(modes.load(std::memory_order_relaxed) & kKernelModes);
  key.add(observe::settings.load(std::memory_order_relaxed));
  if (autocasting()) {
    const AutocastOptions options = autocast_options();
    key.add(static_cast<uint64_t>(options.dtype));
    key.add(std::string_view(options.device));
  }
  for (size_t i = 0; i < arguments.size(); ++i) add_argument(key, arguments[i], arguments, i, alignments);
}

[[noreturn]] void refuse_argument(const std::string& name, const Tensors& arguments, size_t at) {
  const std::string which = "[compile] argument " + std::to_string(at) + " of '" + name + "'";
  if (!arguments[at].defined()) throw Error(Code::invalid, which + " is undefined");
  throw Error(Code::invalid, which + " is the result of " + arguments[at].op_name() +
                                 " and has a graph, which a replay does not have: detach() it, or compute it inside");
}

void require_arguments(const std::string& name, const Tensors& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].defined() || !arguments[i].is_leaf()) refuse_argument(name, arguments, i);
}

StepResults detached(StepResults results) {
  for (Tensor& each : results.tensors)
    if (each.defined() && each.requires_grad()) each = each.detach();
  return results;
}
}  // namespace

void note_training(uint64_t module) { observe::flip_setting(module); }
void note_unrepeatable(const char* why) { observe::fail(why); }
void note_hook() {
  if (!observe::will_repeat()) ++observe::changes;
}

struct CompiledStep::State {
  explicit State(CompileOptions given) : options(std::move(given)), recordings(options) {}

  // logged: receives a warning for the log. The log may call this step.
  std::optional<StepResults> call(const Tensors& arguments, std::string_view constants, const Function& f,
                                  std::string& logged);
  void clear() {
    recordings.clear();
    flaws.clear();
    arena->storage = {};
    arena->wanted = 0;
  }

  const CompileOptions options;
  std::recursive_mutex mutex;  // the function may ask for figures, or clear
  Recordings recordings;
  struct Flaw {
    int attempts = 0;
    std::string why;
  };
  std::map<std::string, Flaw> flaws;  // by key
  CompileFigures figures;

 private:
  bool may_record(const std::string& key);
  void warn(const std::string& why);
  void complain(const std::string& why);
  void note_lost();
  std::optional<StepResults> call_of_kind(const Tensors& arguments, std::string_view constants, const Function& f);
  std::optional<Tensors> realigned(const Tensors& arguments, std::string_view constants) const;
  StepResults record(std::string key, const Tensors& arguments, std::string_view constants, const Function& f);
  std::optional<StepResults> replay(Recording& recording, const Tensors& arguments, const Function& f);
  std::optional<StepResults> check(Recording& recording, const Tensors& arguments, const Function& f);

  std::string key;  // of the last call
  uint64_t changes = observe::changes;
  const std::shared_ptr<steps::Arena> arena = std::make_shared<steps::Arena>();
  uint64_t replays = 0, lost = 0;  // lost: recordings that no longer fit
  bool warned = false, noted_lost = false, complained = false;
  std::string warning;  // not logged yet
};

void CompiledStep::State::warn(const std::string& why) {
  if (std::exchange(warned, true)) return;
  warning = "[compile] '" + options.name + "' runs op by op: " + why;
}

void CompiledStep::State::complain(const std::string& why) {
  if (std::exchange(complained, true)) return;
  warning = "[compile] '" + options.name + "': " + why;
}

void CompiledStep::State::note_lost() {
  if (std::exchange(noted_lost, true)) return;
  warning = "[compile] '" + options.name + "' was recorded " + std::to_string(figures.recorded) + " times, and replayed " +
            std::to_string(figures.replayed) +
            ": between its calls something changes that no recording outlives, such as requires_grad, a hook, the memory "
            "of a parameter, or an optimiser that the function makes. A recording takes longer than the function";
}

bool CompiledStep::State::may_record(const std::string& key) {
  if (const auto flaw = flaws.find(key); flaw != flaws.end() && flaw->second.attempts >= kAttempts) {
    warn(flaw->second.why);
    return false;
  }
  return recordings.may_add();
}

StepResults CompiledStep::State::record(std::string key, const Tensors& arguments, std::string_view constants,
                                        const Function& f) {
  arena->storage = {};  // the function's own run needs as much
  FunctionRun run = run_observed(arguments, f, false);
  ++figures.recorded;
  if (lost >= kManyLost && lost > figures.replayed) note_lost();
  StepResults results = run.results;
  if (!run.flaw.empty()) {
    if (flaws.size() >= kManyFlaws) flaws.clear();
    Flaw& flaw = flaws[key];
    ++flaw.attempts;
    flaw.why = run.flaw;
    return results;
  }
  flaws.erase(key);
  if (!run.trace.device) return results;
  steps::FusionChoice fusions{options.fuse};
  if (options.fusion_elements) fusions.least = options.fusion_elements;
  const auto made = std::make_shared<Recording>(std::move(key), std::move(run), arena, fusions);
  write_key(made->alike, arguments, constants, Alignments::left_out);
  lost += recordings.add(made);
  if (const std::string& why = recordings.complaint(); !why.empty()) complain(why);
  return results;
}

// Calls the function, replays without effect, and compares the results of each call.
std::optional<StepResults> CompiledStep::State::check(Recording& recording, const Tensors& arguments, const Function& f) {
  FunctionRun run;
  const auto digests = recording.rehearse(arguments, [&]() -> const steps::HostResults& {
    run = run_observed(arguments, f, true);
    return run.host_results;
  });
  if (!digests) return std::nullopt;
  if (const std::string how = recording.difference(*digests, run); !how.empty())
    throw Error(Code::internal, "[compile] '" + options.name + "' does not do what its function does: " + how);
  ++figures.called;
  return run.results;
}

std::optional<StepResults> CompiledStep::State::replay(Recording& recording, const Tensors& arguments, const Function& f) {
  const bool is_due = asked_for() == Capture::check && ++replays % kCheckEvery == 0;
  std::optional<StepResults> results = is_due ? check(recording, arguments, f) : recording.replay(arguments);
  if (results) recordings.note_replay();
  if (results && !is_due) ++figures.replayed;
  return results;
}

// Returns nothing if the function is to be called unrecorded.
std::optional<StepResults> CompiledStep::State::call(const Tensors& arguments, std::string_view constants, const Function& f,
                                                     std::string& logged) {
  const std::lock_guard lock(mutex);
  struct Handed {
    ~Handed() { to.swap(from); }
    std::string &from, &to;
  } const handed{warning, logged};
  if (std::exchange(changes, observe::changes.load()) != observe::changes) {
    lost += recordings.size();
    recordings.clear();
  }
  write_key(key, arguments, constants);
  if (std::ranges::none_of(arguments, is_unaligned) || recordings.find(key, arguments))
    return call_of_kind(arguments, constants, f);
  const std::optional<Tensors> copies = realigned(arguments, constants);
  if (copies) write_key(key, *copies, constants);
  return call_of_kind(copies ? *copies : arguments, constants, f);
}

// Returns the arguments, with copies of unaligned arguments (such as rows of a batch), if a recording differs from this call
// only in alignments. Without copies, each alignment would be a kind of its own.
std::optional<Tensors> CompiledStep::State::realigned(const Tensors& arguments, std::string_view constants) const {
  std::string alike;
  write_key(alike, arguments, constants, Alignments::left_out);
  const std::shared_ptr<Recording> found = recordings.find_alike(alike, arguments);
  if (!found) return std::nullopt;
  Tensors copies = arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!is_unaligned(arguments[i])) continue;
    if (arguments[i].requires_grad() || !found->only_reads(i, arguments)) return std::nullopt;
    copies[i] = dense_copy(arguments[i]);
  }
  return copies;
}

// `key` is the key of the arguments.
std::optional<StepResults> CompiledStep::State::call_of_kind(const Tensors& arguments, std::string_view constants,
                                                             const Function& f) {
  if (const std::shared_ptr<Recording> found = recordings.find(key, arguments)) {
    if (found->overlaps(arguments)) {
      warn(
          "two of its tensors overlap in memory, and it writes one of them: pass copies, or compile it without fusions "
          "(fuse = false)");
      ++figures.called;
      return std::nullopt;
    }
    if (std::optional<StepResults> results = replay(*found, arguments, f)) return results;
    lost += recordings.erase(found);
    key = found->key;  // the function may have called this step
  }
  if (may_record(key)) return record(key, arguments, constants, f);
  ++figures.called;
  return std::nullopt;
}

CompiledStep::CompiledStep(CompileOptions options) : state_(std::make_unique<State>(std::move(options))) {}
CompiledStep::~CompiledStep() = default;
CompiledStep::CompiledStep(CompiledStep&&) noexcept = default;
CompiledStep& CompiledStep::operator=(CompiledStep&&) noexcept = default;

StepResults CompiledStep::call(const std::vector<Tensor>& arguments, std::string_view constants, const Function& f) const {
  throw_if_cancelled();
  if (asked_for() == Capture::off || observe::will_repeat()) return detached(f(arguments));  // without a graph, as a replay
  require_arguments(state_->options.name, arguments);
  if (is_looked_at()) return detached(f(arguments));
  std::string warning;
  std::optional<StepResults> results = state_->call(arguments, constants, f, warning);
  if (!warning.empty()) log(LogLevel::warning, warning);
  if (results) return std::move(*results);
  return detached(f(arguments));
}

void CompiledStep::clear() const {
  const std::lock_guard lock(state_->mutex);
  state_->clear();
}

std::string CompiledStep::explain() const {
  const std::lock_guard lock(state_->mutex);
  const CompileFigures& f = state_->figures;
  std::string text = "'" + state_->options.name + "': " + std::to_string(f.recorded) + " calls recorded, " +
                     std::to_string(f.replayed) + " replayed, " + std::to_string(f.called) + " called\n";
  state_->recordings.for_each([&](const Recording& each) { text += "  " + each.text() + "\n"; });
  for (const auto& [key, flaw] : state_->flaws)
    text += "  not replayed (" + std::to_string(flaw.attempts) + " recordings): " + flaw.why + "\n";
  return text;
}

std::shared_ptr<const Recording> only_recording(const CompiledStep& step) {
  const std::lock_guard lock(step.state_->mutex);
  const auto& all = step.state_->recordings;
  if (all.size() == 1) return all.front();
  const std::string name = "[save] '" + step.state_->options.name + "' ";
  if (all.empty()) throw Error(Code::invalid, name + "has no recording: call it once with arguments of the shapes to save");
  throw Error(Code::invalid, name + "has " + std::to_string(all.size()) +
                                 " recordings, for different arguments: clear() it, and call it once with those to save");
}

CompileFigures CompiledStep::figures() const {
  const std::lock_guard lock(state_->mutex);
  return state_->figures;
}

}  // namespace plugrad
