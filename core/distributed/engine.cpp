#include <core/distributed/engine.hpp>

#include <core/runtime/local.hpp>
#include <core/runtime/plugins/communicators.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/sdk/threads.hpp>
#include <process/process_state.hpp>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <map>
#include <memory>
#include <thread>

namespace plugrad::distributed {
using std::chrono::microseconds;
using std::chrono::milliseconds;
namespace {

Ending ending_of(plugrad_status status) { return {status, status ? take_report() : ""}; }

// Asks for time slices of 0.1 ms, or for the usual ones. Since Linux 6.12 a thread with short slices that wakes gets a core
// at once from threads with longer slices, such as an engine's own threads that poll. Older kernels ignore it.
void ask_for_short_slices(bool on) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{48, 0, 0, 0, 0, on ? 100000u : 0u, 0, 0};
  syscall(SYS_sched_setattr, 0, &attributes, 0u);
}

// The end of a task, for which another thread waits. std::promise is for programs: its std::call_once has variables of
// libstdc++ for each thread, which a library with static thread-local storage cannot reach once the process runs.
class Completion {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_set_; });
  }
  bool wait_for(milliseconds most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return is_set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

// Naps between polls: none at first, then longer ones, so that a wait for another rank's computation takes no core.
class Naps {
 public:
  void take() {
    const auto waited = Engine::Clock::now() - begin_;
    if (waited < microseconds(20)) return;
    const microseconds nap(waited < milliseconds(2) ? 10 : waited < milliseconds(200) ? 50 : 1000);
    std::this_thread::sleep_for(nap);
  }

 private:
  Engine::Clock::time_point begin_ = Engine::Clock::now();
};
}  // namespace

Engine& Engine::of(const std::string& communicator) {
  static auto& mutex = *new std::mutex;
  static auto& engines = *new std::map<const plugrad_communicator*, std::unique_ptr<Engine>>;
  const plugrad_communicator& table = engines::find(communicator);
  const std::lock_guard lock(mutex);
  std::unique_ptr<Engine>& engine = engines[&table];
  if (!engine) engine.reset(new Engine(table));
  return *engine;
}

Engine::Engine(const plugrad_communicator& table) : table_(table) {
  start_thread([this] { serve(); });
}

void Engine::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void Engine::call(const std::function<void()>& task) {
  Completion done;
  post([&] {
    task();
    done.set();
  });
  done.wait();
}

bool Engine::finish(milliseconds most) {
  if (!table_.finish) return true;
  const auto done = std::make_shared<Completion>();
  post([this, done] {
    contained_quietly(table_.name, "finish", table_.finish);
    done->set();
  });
  return done->wait_for(most);
}

void Engine::serve() {
  prctl(PR_SET_NAME, "plugrad-comm");
  prctl(PR_SET_TIMERSLACK, 1);  // else a nap of 20 us takes 70
  Naps naps;
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      const bool polls = table_.test && !in_flight_.empty();
      if (!polls) wake_.wait(lock, [&] { return !tasks_.empty(); });
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
    }
    if (task) {
      task();
      naps = {};
    }
    const size_t before = in_flight_.size();
    progress();
    if (in_flight_.size() != before) naps = {};
    else if (!task) naps.take();
  }
}

// The engine may start threads and install handlers here; the process keeps its signal handlers, limits and so on.
Ending Engine::make_group(const std::function<plugrad_status(plugrad_group**, int32_t*, int32_t*)>& make,
                          plugrad_group*& group, int& rank, int& size) {
  ProcessState before;
  ask_for_short_slices(false);  // threads that the engine starts have the slices of this one
  group = nullptr;
  int32_t made_rank = -1, made_size = -1;
  const Ending ending = ending_of([&] {
    try {
      return make(&group, &made_rank, &made_size);
    } catch (...) {
      return report_exception();
    }
  }());
  if (const std::string changed = before.restore(true); !changed.empty())
    log(LogLevel::warning,
        std::string("[") + table_.name + "] it changed " + changed + " of the process, which the core put back");
  ask_for_short_slices(true);
  rank = made_rank;
  size = made_size;
  return ending;
}

Ending Engine::poll(plugrad_work* work, Clock::time_point deadline, const std::function<bool()>& ends_early) {
  Naps naps;
  for (uint32_t count = 1;; ++count) {
    uint32_t ended = 0;
    if (const plugrad_status status = contained(table_.test, work, &ended)) return ending_of(status);
    if (ended) return {};
    progress();
    if (count % 64) {
      naps.take();
      continue;
    }
    if (ends_early()) return {PLUGRAD_PEER_LOST, "the group was aborted"};
    if (Clock::now() > deadline) return {PLUGRAD_TIMED_OUT, "no end within the time-out"};
  }
}

Ending Engine::run(plugrad_group* group, const plugrad_collective& collective, milliseconds timeout,
                   const std::function<bool()>& ends_early) {
  plugrad_work* work = nullptr;
  if (const plugrad_status status = contained(table_.start, group, &collective, &work)) return ending_of(status);
  if (!table_.test) return ending_of(contained(table_.wait, work, static_cast<uint64_t>(timeout.count())));
  return poll(work, Clock::now() + timeout, ends_early);
}

Ending Engine::start(InFlight flight, const plugrad_collective& collective) {
  const Ending ending = ending_of(contained(table_.start, flight.group, &collective, &flight.work));
  if (!ending.status) in_flight_.push_back(std::move(flight));
  return ending;
}

// Tests what is in flight, once.
void Engine::progress() {
  if (!table_.test) return;
  for (auto each = in_flight_.begin(); each != in_flight_.end();) {
    uint32_t ended = 0;
    Ending ending = ending_of(contained(table_.test, each->work, &ended));
    if (!ending.status && !ended) {
      if (each->ends_early()) ending = {PLUGRAD_PEER_LOST, "the group was aborted"};
      else if (Clock::now() > each->deadline) ending = {PLUGRAD_TIMED_OUT, "no end within the time-out"};
      else {
        ++each;
        continue;
      }
    }
    const InFlight over = std::move(*each);
    each = in_flight_.erase(each);
    over.ended(ending);
  }
}

void Engine::complete(const void* owner) {
  if (table_.test) return;
  const auto found = std::ranges::find(in_flight_, owner, &InFlight::owner);
  if (found == in_flight_.end()) return;
  const InFlight flight = std::move(*found);
  in_flight_.erase(found);
  const auto left = std::chrono::duration_cast<milliseconds>(flight.deadline - Clock::now());
  const uint64_t most = static_cast<uint64_t>(std::max<int64_t>(left.count(), 1));
  flight.ended(ending_of(contained(table_.wait, flight.work, most)));
}

void Engine::complete(std::span<const void* const> owners, const std::function<bool()>& done) {
  for (const void* each : owners)
    if (!done()) complete(each);
  for (Naps naps; !done(); naps.take()) progress();
}

void Engine::complete_on_devices() {
  for (Naps naps; std::ranges::any_of(in_flight_, &InFlight::is_on_device); naps.take()) progress();
}

void Engine::drop(plugrad_group* group, const Ending& why) {
  std::list<InFlight> dropped;
  for (auto each = in_flight_.begin(); each != in_flight_.end();) {
    const auto next = std::next(each);
    if (each->group == group) dropped.splice(dropped.end(), in_flight_, each);
    each = next;
  }
  for (const InFlight& each : dropped) each.ended(why);
}

}  // namespace plugrad::distributed
