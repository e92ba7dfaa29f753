#include <plugrad/steps/compile.hpp>

#include <core/autograd/autocast.hpp>
#include <core/autograd/rule.hpp>
#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <core/steps/call_key.hpp>
#include <core/steps/recordings.hpp>
#include <core/steps/side_lanes.hpp>
#include <plugrad/runtime/cancel.hpp>
#include <plugrad/runtime/log.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace plugrad {
namespace {
using Tensors = std::vector<Tensor>;
using steps::Alignments, steps::write_key;
constexpr uint64_t kCheckEvery = 16;
constexpr uint64_t kManyChanges = 8;  // recordings for a warning, because something beside tensors changed
constexpr size_t kManyReasons = 8;    // to remember
constexpr uint64_t kManyLost = 16;    // lost recordings for a warning, if they outnumber the replays
constexpr size_t kManyFlaws = 1000;
constexpr uint64_t kManyFlawed = 8, kRest = 64;  // flawed recordings in a row; then only some calls are recorded
constexpr int kAttempts = 3;                     // flawed recordings in a row, for the same arguments

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

// A dense copy, outside the graph.
Tensor dense_copy(const Tensor& x) {
  Tensor out = empty_like(Op::COPY, device_of(x), view_of(x), dtype_of(x));
  if (view_of(x).count) run(Op::COPY, {out}, {x});
  return out;
}

bool is_unaligned(const Tensor& x) { return view_of(x).layout & PLUGRAD_UNALIGNED; }

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
bool is_recording_step() { return observe::will_repeat(); }
void begin_lifting() { observe::lifted = {}; }
bool end_lifting() { return std::exchange(observe::lifted, {}).are_operands_alone(); }

// A copy in each replay: the step may write to the tensor.
Tensor constant_from_host(const void* elements, size_t count, DType dtype, const Shape& shape, Device device) {
  if (!observe::is_recorded()) return Tensor::from_host(elements, count, dtype, shape, device);
  const observe::ConstantUploads constant;
  return dense_copy(Tensor::from_host(elements, count, dtype, shape, device));
}

void note_hook() {
  if (!observe::will_repeat()) ++observe::changes;
}

struct CompiledStep::State {
  explicit State(CompileOptions given) : options(std::move(given)), recordings(options), lanes(options) {}

  // logged: receives a warning for the log. The log may call this step.
  std::optional<StepResults> call(const Tensors& arguments, std::string_view constants, const Function& f,
                                  const Numbers* given, std::string& logged);
  void clear() {
    recordings.clear();
    lanes.clear();
    flaws.clear();
    last.reset();
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
  CompileFigures all_figures() const {
    const CompileFigures beside = lanes.figures();
    return {figures.recorded + beside.recorded, figures.replayed + beside.replayed, figures.called};
  }
  CompileFigures figures;            // of the step's own lane
  const Numbers* numbers = nullptr;  // of the call; null if its function takes none
  SideLanes lanes;
  std::string change;               // told by the caller, since the last recording
  std::deque<std::string> reasons;  // why the last recordings were made, in their order

 private:
  bool may_record(const std::string& key);
  void warn(const std::string& why);
  void complain(const std::string& why);
  void note_lost();
  void note_reason(const Tensors& arguments, std::string_view constants);
  std::optional<StepResults> call_of_kind(const Tensors& arguments, std::string_view constants, const Function& f);
  std::optional<Tensors> realigned(const Tensors& arguments, std::string_view constants) const;
  StepResults record(std::string key, const Tensors& arguments, std::string_view constants, const Function& f);
  std::optional<StepResults> replay(Recording& recording, const Tensors& arguments, const Function& f);
  std::optional<StepResults> check(Recording& recording, const Tensors& arguments, const Function& f);

  std::string key;  // of the last call
  uint64_t changes = observe::changes;
  const std::shared_ptr<steps::Arena> arena = std::make_shared<steps::Arena>();
  uint64_t replays = 0, lost = 0;       // lost: recordings that no longer fit
  std::optional<steps::CallForm> last;  // of the last recording
  std::string last_constants;
  uint64_t last_changes = 0, of_constants = 0;  // of_constants: recordings because of them
  uint64_t flawed = 0;                          // recordings in a row
  std::string last_flaw;
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

// Remembers why this recording is made, if it is not the first one.
void CompiledStep::State::note_reason(const Tensors& arguments, std::string_view constants) {
  const steps::CallForm form(arguments);
  std::string told = std::exchange(change, {});
  if (last) {
    const bool by_constants = last_constants != constants;
    of_constants += by_constants;
    std::string reason = last->difference(form);
    if (by_constants) reason = told.empty() ? "a value besides tensors changed" : std::move(told);
    else if (reason.empty())
      reason = last_changes != changes
                   ? "a tensor outside has other memory, needs another gradient or has ended, or a hook changed"
                   : "a mode, such as no_grad or training, an alignment or a gradient changed";
    if (reasons.size() == kManyReasons) reasons.pop_front();
    reasons.push_back(std::move(reason));
    if (of_constants >= kManyChanges && figures.recorded > figures.replayed)
      complain("it was recorded " + std::to_string(figures.recorded) + " times in " +
               std::to_string(figures.recorded + figures.replayed + figures.called) + " calls, the last time because " +
               reasons.back() + ". A recording takes longer than the function: pass what changes as a tensor");
  }
  last.emplace(form);
  last_constants = constants;
  last_changes = changes;
}

bool CompiledStep::State::may_record(const std::string& key) {
  if (const auto flaw = flaws.find(key); flaw != flaws.end() && flaw->second.attempts >= kAttempts) {
    warn(flaw->second.why);
    return false;
  }
  if (flawed >= kManyFlawed && ++flawed % kRest) {
    warn(last_flaw);
    return false;
  }
  return recordings.may_add();
}

StepResults CompiledStep::State::record(std::string key, const Tensors& arguments, std::string_view constants,
                                        const Function& f) {
  arena->storage = {};  // the function's own run needs as much
  const SideLanes::Alone alone(lanes);
  FunctionRun run = run_observed(arguments, f, false);
  ++figures.recorded;
  if (lost >= kManyLost && lost > figures.replayed) note_lost();
  StepResults results = run.results;
  if (!run.flaw.empty()) {
    if (flaws.size() >= kManyFlaws) flaws.clear();
    Flaw& flaw = flaws[key];
    ++flaw.attempts;
    flaw.why = last_flaw = run.flaw;
    ++flawed;
    return results;
  }
  flaws.erase(key);
  flawed = 0;
  note_reason(arguments, constants);
  if (!run.trace.device) return results;
  const auto made = std::make_shared<Recording>(std::move(key), std::move(run), arena, fusion_choice(options));
  write_key(made->alike, arguments, constants, Alignments::left_out);
  if (!numbers && made->takes_numbers()) return results;  // numbers of another step, which the program kept
  if (numbers && !recordings.any_of([&](const Recording& each) { return made->has_calls_of(each); })) return results;
  if (made->has_no_effects()) lanes.allow(made->key);
  lost += recordings.add(made);
  if (const std::string& why = recordings.complaint(); !why.empty())
    complain(reasons.empty() ? why : why + ". The last was made because " + reasons.back());
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
  if (recording.takes_numbers()) recording.set_numbers((*numbers)(recording.form()));
  std::optional<SideLanes::Alone> alone;
  if (!recording.has_no_effects()) alone.emplace(lanes);
  const bool is_due = asked_for() == Capture::check && ++replays % kCheckEvery == 0;
  std::optional<StepResults> results = is_due ? check(recording, arguments, f) : recording.replay(arguments);
  if (results) recordings.note_replay();
  if (results && !is_due) ++figures.replayed;
  return results;
}

// Returns nothing if the function is to be called unrecorded.
std::optional<StepResults> CompiledStep::State::call(const Tensors& arguments, std::string_view constants, const Function& f,
                                                     const Numbers* given, std::string& logged) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) {
    if (std::optional<StepResults> results = lanes.replay(arguments, constants)) return results;
    lock.lock();
    if (std::optional<StepResults> results = lanes.record(arguments, constants, f)) return results;
  }
  struct Handed {
    ~Handed() { to.swap(from); }
    std::string &from, &to;
  } const handed{warning, logged};
  numbers = given;
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

StepResults CompiledStep::call(const std::vector<Tensor>& arguments, std::string_view constants, const Function& f,
                               const Numbers& numbers) const {
  throw_if_cancelled();
  if (asked_for() == Capture::off || observe::will_repeat()) return detached(f(arguments));  // without a graph, as a replay
  require_arguments(state_->options.name, arguments);
  if (stand_ins::runs_plainly()) return f(arguments);
  if (is_looked_at()) return detached(f(arguments));
  std::string warning;
  std::optional<StepResults> results = state_->call(arguments, constants, f, numbers ? &numbers : nullptr, warning);
  if (!warning.empty()) log(LogLevel::warning, warning);
  if (results) return std::move(*results);
  return detached(f(arguments));
}

bool CompiledStep::knows(const std::vector<Tensor>& arguments, std::string_view constants) const {
  const std::lock_guard lock(state_->mutex);
  std::string key;
  write_key(key, arguments, constants);
  return state_->recordings.find(key, arguments) != nullptr;
}

void CompiledStep::note_change(std::string what) const {
  const std::lock_guard lock(state_->mutex);
  state_->change = std::move(what);
}

void CompiledStep::clear() const {
  const std::lock_guard lock(state_->mutex);
  state_->clear();
}

std::string CompiledStep::explain() const {
  const std::lock_guard lock(state_->mutex);
  const CompileFigures f = state_->all_figures();
  std::string text = "'" + state_->options.name + "': " + std::to_string(f.recorded) + " calls recorded, " +
                     std::to_string(f.replayed) + " replayed, " + std::to_string(f.called) + " called\n";
  state_->recordings.for_each([&](const Recording& each) { text += "  " + each.text() + "\n"; });
  for (const std::string& each : state_->reasons) text += "  recorded anew: " + each + "\n";
  text += state_->lanes.explain();
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
  return state_->all_figures();
}

}  // namespace plugrad
