#include <plugrad/distributed/process_group.hpp>

#include <core/distributed/group.hpp>
#include <plugrad/runtime/error.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace plugrad::distributed {
namespace {
constexpr int kBroken = 70;  // the exit status of a process that had to leave its engine behind: EX_SOFTWARE of sysexits.h

std::mutex mutex;
// Never destroyed: a process forked from a rank could not end its threads.
std::shared_ptr<GroupState>& current = *new std::shared_ptr<GroupState>;
Engine* used = nullptr;
pid_t process = 0;

// Null in a process forked from a rank.
std::shared_ptr<GroupState> state() {
  const std::lock_guard lock(mutex);
  return process == getpid() ? current : nullptr;
}

// Leaves the group, and ends the engine. A process forked from a rank has neither.
void end_at_exit() {
  if (getpid() != process) return;
  try {
    destroy_process_group();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  static bool is_finished = false;
  if (std::exchange(is_finished, true)) return;
  if (!used->finish(std::chrono::minutes(1))) {
    std::fprintf(stderr, "[destroy_process_group] %s does not end within a minute: the process ends without it\n",
                 used->table().name);
    std::fflush(nullptr);
    _exit(kBroken);
  }
}

void require_same_engine(const Engine& engine) {
  if (used && used != &engine && used->table().finish)
    throw Error(Code::invalid, std::string("[init_process_group] this process used ") + used->table().name +
                                   " before, and cannot start another engine: use one communicator for each process");
}
}  // namespace

int Group::rank() const { return state_->rank(); }
int Group::size() const { return state_->size(); }
const std::vector<int>& Group::ranks() const { return state_->ranks(); }
std::string Group::communicator() const { return state_->job().engine().table().name; }
std::string Group::engine() const { return state_->job().engine().table().version; }

Group init_process_group(const ProcessGroupOptions& options) {
  const std::lock_guard lock(mutex);
  if (used && process != getpid())
    throw Error(Code::device_lost,
                "[init_process_group] this process was forked from one that had joined a group: start ranks "
                "as programs of their own, as `plugrad launch` does");
  if (current)
    throw Error(Code::invalid, "[init_process_group] this process is in a group already: call destroy_process_group first");
  Engine& engine = Engine::of(launch_of(options).communicator);
  require_same_engine(engine);
  const bool is_first = !used;
  used = &engine;
  process = getpid();
  if (is_first) std::atexit(end_at_exit);
  current = std::make_shared<GroupState>(std::make_shared<Job>(options));
  // The engine's libraries are loaded by now: the group leaves before their own handlers run.
  if (is_first) std::atexit(end_at_exit);
  return Group(current);
}

void destroy_process_group() {
  std::shared_ptr<GroupState> leaving = state();
  if (!leaving) return;
  {
    const std::lock_guard lock(mutex);
    current = nullptr;
  }
  leaving->job().leave();
}

bool is_initialized() { return state() != nullptr; }
bool is_launched() { return is_rank(launch_of({})); }

Group world() {
  if (auto group = state()) return Group(std::move(group));
  throw Error(Code::invalid, "[world] this process is in no group: call init_process_group first");
}

int get_rank(const Group& group) { return group.defined() ? group.rank() : world().rank(); }
int get_world_size(const Group& group) { return group.defined() ? group.size() : world().size(); }

Group new_group(const std::vector<int>& ranks) {
  const Group all = world();
  std::vector<int> sorted = ranks;
  std::ranges::sort(sorted);
  if (sorted.empty() || std::ranges::adjacent_find(sorted) != sorted.end() || sorted.front() < 0 ||
      sorted.back() >= all.size())
    throw Error(Code::invalid, "[new_group] different ranks from 0 to " + std::to_string(all.size() - 1) + " expected");
  return Group(all.state().split(sorted));
}

void abort_process_group(const std::string& why) noexcept {
  try {
    if (const auto group = state()) group->job().abort(why);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

}  // namespace plugrad::distributed
