#include <core/steps/side_lanes.hpp>

#include <core/runtime/observe/observed.hpp>
#include <core/steps/call_key.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace plugrad {
namespace {
constexpr size_t kManyKeys = 10000;

size_t most_lanes() {
  static const size_t most = std::max(std::thread::hardware_concurrency(), 2u);
  return most;
}
}  // namespace

SideLanes::SideLanes(const CompileOptions& options) : options_(options) {}

void SideLanes::allow(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (allowed_.size() == kManyKeys) allowed_.clear();
  allowed_.insert(key);
}

// --- Lanes.

SideLanes::Lane* SideLanes::take(const std::string& key, const std::vector<Tensor>& arguments, bool with_recording) {
  const std::lock_guard lock(mutex_);
  if (alone_ || !allowed_.contains(key)) return nullptr;
  const uint64_t changes = observe::changes;
  Lane* found = nullptr;
  for (Lane& each : lanes_) {
    if (each.is_busy) continue;
    if (std::exchange(each.changes, changes) != changes || std::exchange(each.generation, generation_) != generation_)
      each.recordings.clear();
    if (static_cast<bool>(each.recordings.find(key, arguments)) == with_recording) found = &each;
  }
  if (!found && !with_recording && lanes_.size() < most_lanes()) {
    found = &lanes_.emplace_back(options_);
    found->changes = changes;
    found->generation = generation_;
  }
  if (!found) return nullptr;
  found->is_busy = true;
  ++running_;
  return found;
}

void SideLanes::give_back(Lane& lane) {
  {
    const std::lock_guard lock(mutex_);
    if (lane.generation != generation_) lane.recordings.clear();
    lane.is_busy = false;
    --running_;
  }
  idle_.notify_all();
}

struct SideLanes::Lease {
  ~Lease() { lanes.give_back(lane); }
  SideLanes& lanes;
  Lane& lane;
};

SideLanes::Alone::Alone(SideLanes& lanes) : lanes_(lanes) {
  std::unique_lock lock(lanes_.mutex_);
  ++lanes_.alone_;
  lanes_.idle_.wait(lock, [&] { return lanes_.running_ == 0; });
}

SideLanes::Alone::~Alone() {
  const std::lock_guard lock(lanes_.mutex_);
  --lanes_.alone_;
}

void SideLanes::clear() {
  const std::lock_guard lock(mutex_);
  ++generation_;
  allowed_.clear();
  for (Lane& each : lanes_) {
    if (each.is_busy) continue;
    each.recordings.clear();
    each.arena->storage = {};
    each.arena->wanted = 0;
  }
}

// --- Calls.

std::optional<StepResults> SideLanes::replay(const std::vector<Tensor>& arguments, std::string_view constants) {
  std::string key;
  steps::write_key(key, arguments, constants);
  Lane* const lane = take(key, arguments, true);
  if (!lane) return std::nullopt;
  const Lease lease{*this, *lane};
  const std::shared_ptr<Recording> found = lane->recordings.find(key, arguments);
  if (found->overlaps(arguments)) return std::nullopt;
  std::optional<StepResults> results = found->replay(arguments);
  lane->recordings.note_replay();
  const std::lock_guard lock(mutex_);
  ++figures_.replayed;
  return results;
}

std::optional<StepResults> SideLanes::record(const std::vector<Tensor>& arguments, std::string_view constants,
                                             const CompiledStep::Function& f) {
  std::string key;
  steps::write_key(key, arguments, constants);
  Lane* const lane = take(key, arguments, false);
  if (!lane) return std::nullopt;
  const Lease lease{*this, *lane};
  lane->arena->storage = {};  // the function's own run needs as much
  FunctionRun run = run_observed(arguments, f, false);
  StepResults results = run.results;
  std::shared_ptr<Recording> made;
  if (run.flaw.empty() && run.trace.device)
    made = std::make_shared<Recording>(key, std::move(run), lane->arena, fusion_choice(options_));
  const bool is_kept = made && made->has_no_effects();
  if (is_kept) lane->recordings.add(std::move(made));
  const std::lock_guard lock(mutex_);
  ++figures_.recorded;
  if (!is_kept) allowed_.erase(key);
  return results;
}

CompileFigures SideLanes::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

std::string SideLanes::explain() const {
  const std::lock_guard lock(mutex_);
  if (lanes_.empty()) return {};
  return "  " + std::to_string(lanes_.size()) +
         " threads called it side by side at most, besides the first: " + std::to_string(figures_.recorded) +
         " calls recorded there, " + std::to_string(figures_.replayed) + " replayed\n";
}

}  // namespace plugrad
