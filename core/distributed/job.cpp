#include <core/distributed/job.hpp>

#include <core/distributed/pmix.hpp>
#include <core/runtime/plugins/environment_options.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

namespace plugrad::distributed {
using std::chrono::milliseconds;
namespace {
// How long a rank that leaves keeps its connections for the others, and after a failure the store.
constexpr milliseconds kFarewell{2000};

std::string ranks_text(int size) { return std::to_string(size) + (size == 1 ? " rank" : " ranks"); }

void require_launch(const Launch& launch, const plugrad_communicator& table) {
  const bool by_engine = table.capabilities & PLUGRAD_COMM_LAUNCHES;
  if (launch.rank < 0 && !by_engine)
    throw Error(Code::invalid, std::string("[init_process_group] nothing tells this process its rank: start it by `plugrad "
                                           "launch -n N PROGRAM`, torchrun or srun, or give rank and size (") +
                                   table.name + " has no launcher of its own)");
  if (launch.store.empty() && !by_engine)
    throw Error(Code::invalid,
                "[init_process_group] nothing tells this process where the ranks meet: set "
                "PLUGRAD_STORE=file:///DIRECTORY or MASTER_ADDR and MASTER_PORT, or give a store");
}
}  // namespace

Job::Job(const ProcessGroupOptions& options) : launch_(launch_of(options)), engine_(Engine::of(launch_.communicator)) {
  int32_t rank = -1, size = -1;
  engine_.table().launched(host(), &rank, &size);
  if (size > 0) {  // the engine's launcher counts, not what an outer launcher may have left in the environment
    launch_.rank = rank;
    launch_.size = size;
  }
  require_launch(launch_, engine_.table());
  const struct Told {
    ~Told() { leave_pmix(); }
  } at_end{};
  if (!launch_.store.empty()) store_ = open_store(launch_);
  watch(launch_.rank, launch_.size);  // a rank may end while others still connect
  open(options.options);
  if (!store_ && size_ > 1) share_store();
  watch(rank_, size_);
}

void Job::watch(int rank, int size) {
  if (!store_ || watch_ || rank < 0 || size < 2) return;
  const auto failed = [this](const std::string& cause) { break_by(cause, Code::peer_lost); };
  watch_ = std::make_unique<Watch>(*store_, rank, size, failed);
}

void Job::open(const OptionList& given) {
  const plugrad_communicator& table = engine_.table();
  std::map<std::string, std::string> options = environment_options(table.name, "init_process_group");
  for (const auto& [key, value] : given) options[key] = value;
  if (store_) table_ = store_for_engines(*store_);
  std::vector<plugrad_option> pairs;
  for (const auto& [key, value] : options) pairs.push_back({sizeof(plugrad_option), 0, key.c_str(), value.c_str()});
  plugrad_group_options wanted{};
  wanted.struct_size = sizeof wanted;
  wanted.generation = launch_.generation;
  wanted.rank = launch_.rank;
  wanted.size = launch_.size;
  wanted.local_size = launch_.local_size;
  wanted.store = store_ ? &table_ : nullptr;
  wanted.timeout = static_cast<uint64_t>(launch_.timeout.count());
  wanted.options = {sizeof(plugrad_options), static_cast<uint32_t>(pairs.size()), sizeof(plugrad_option), pairs.data()};
  const auto join = [&](plugrad_group** group, int32_t* rank, int32_t* size) {
    return table.open(host(), &wanted, group, rank, size);
  };
  Ending ending;
  engine_.call([&] { ending = engine_.make_group(join, world_, rank_, size_); });
  if (ending.status) throw_unopened(ending);
  require_size(launch_.rank, launch_.size);
  add(world_);
}

void Job::throw_unopened(const Ending& ending) const {
  std::string cause;
  try {
    if (watch_ && ending.status != PLUGRAD_INVALID) cause = watch_->find_ended();
    else if (store_) cause = store_->get(kFailed).value_or("");
  } catch (const Error&) {  // the store is gone: the engine's reason is all that is known
  }
  throw Error(ending.status == PLUGRAD_INVALID ? Code::invalid : Code::peer_lost,
              "[init_process_group] " + cause + (cause.empty() ? "" : " (") + engine_.table().name + ": " + ending.reason +
                  (cause.empty() ? "" : ")"));
}

// Under the launcher of another MPI library, each process is alone in a world of 1: N trainings instead of one.
void Job::require_size(int wanted_rank, int wanted) {
  if (wanted < 0 || (wanted == size_ && wanted_rank == rank_)) return;
  const std::string seen = ranks_text(size_) + " (this is rank " + std::to_string(rank_) + ")";
  engine_.call([&] { contained_quietly(engine_.table().name, "close", engine_.table().close, world_); });
  throw Error(Code::invalid, "[init_process_group] the launcher started " + ranks_text(wanted) + " (this is rank " +
                                 std::to_string(wanted_rank) + "), but " + engine_.table().version + " sees " + seen +
                                 ": start the program by the launcher of this library, or choose another communicator "
                                 "(PLUGRAD_COMMUNICATOR)");
}

// Without a store, rank 0 opens one, and the engine tells the others where.
void Job::share_store() {
  char address[256] = "";
  std::string why;
  Launch here = launch_;
  here.rank = rank_;
  here.size = size_;
  here.timeout = std::min(launch_.timeout, milliseconds(10000));
  if (rank_ == 0) try {
      std::string whole;
      store_ = listen_anywhere(here, whole);
      whole.copy(address, sizeof address - 1);
    } catch (const Error& error) {
      why = error.what();
    }
  plugrad_collective c{};
  c.struct_size = sizeof c;
  c.kind = PLUGRAD_COLL_BROADCAST;
  c.from = c.to = address;
  c.count = sizeof address;
  c.dtype = PLUGRAD_U8;
  c.item = 1;
  c.peer = 0;
  Ending ending;
  engine_.call([&] { ending = engine_.run(world_, c, launch_.timeout, [] { return false; }); });
  if (ending.status)
    throw Error(Code::peer_lost, "[init_process_group] " + std::string(engine_.table().name) + ": " + ending.reason);
  if (rank_ && *address) try {
      store_ = open_store_at(address, here);
    } catch (const Error& error) {
      why = error.what();
    }
  if (!all_have_store()) store_.reset();
  if (!store_)
    log(LogLevel::warning, "[init_process_group] the ranks have no store, so errors will not name the rank that failed " +
                               (why.empty() ? "(rank 0 could not open one)" : "(" + why + ")"));
}

bool Job::all_have_store() {
  int32_t has = store_ != nullptr;
  plugrad_collective c{};
  c.struct_size = sizeof c;
  c.kind = PLUGRAD_COLL_ALL_REDUCE;
  c.from = c.to = &has;
  c.count = 1;
  c.dtype = PLUGRAD_I32;
  c.item = sizeof has;
  c.how = PLUGRAD_REDUCE_MIN;
  c.peer = -1;
  Ending ending;
  engine_.call([&] { ending = engine_.run(world_, c, launch_.timeout, [] { return false; }); });
  return !ending.status && has;
}

Job::~Job() = default;

void Job::add(plugrad_group* group) {
  const std::lock_guard lock(groups_mutex_);
  groups_.push_back(group);
  if (broken_) contained_quietly(engine_.table().name, "abort", engine_.table().abort, group);
}

void Job::note(const Call& call) {
  if (watch_) watch_->note(call);
}

void Job::leave() {
  engine_.call([this] { engine_.complete_on_devices(); });
  const bool was_told = broken_ && known_;
  if (watch_ && !broken_) try {
      watch_->leave();
      if (const std::string cause = watch_->wait_for_leaving(kFarewell); !cause.empty()) break_by(cause, Code::peer_lost);
    } catch (const Error& error) {  // the store is gone, and with it rank 0, which had no more to wait for
      log(LogLevel::info, error.what());
    }
  const bool failed = broken_ && !was_told;
  close_groups();
  const auto end = Engine::Clock::now() + launch_.timeout;
  while (watch_ && store_->port() && !broken_ && Engine::Clock::now() < end && !watch_->all_left())
    std::this_thread::sleep_for(milliseconds(20));
  if (watch_ && broken_) store_->wait_for_others(kFarewell);
  watch_.reset();
  if (failed) throw error("destroy_process_group");
}

void Job::close_groups() {
  std::vector<plugrad_group*> groups;
  {
    const std::lock_guard lock(groups_mutex_);
    groups.swap(groups_);
  }
  const plugrad_communicator& table = engine_.table();
  engine_.call([&] {
    left_ = true;
    for (auto each = groups.rbegin(); each != groups.rend(); ++each) {
      engine_.drop(*each, {PLUGRAD_PEER_LOST, "the group was left"});
      contained_quietly(table.name, "close", table.close, *each);
    }
  });
}

void Job::abort(const std::string& why) {
  known_ = true;
  if (broken_) return;  // another rank is the cause
  if (watch_) watch_->accuse("rank " + std::to_string(rank_) + " (process " + std::to_string(getpid()) + ") failed: " + why);
  break_by("this rank failed: " + why, Code::peer_lost);
}

void Job::require_whole(const std::string& what) const {
  if (left_) throw Error(Code::invalid, "[" + what.substr(0, what.find(' ')) + "] this process has left the group");
  if (broken_) throw error(what);
}

// Ends what waits in the engine. [any]
void Job::break_by(const std::string& cause, Code code) {
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return;
    cause_ = cause;
    code_ = code;
    broken_ = true;
  }
  const std::lock_guard lock(groups_mutex_);
  for (plugrad_group* each : groups_) contained_quietly(engine_.table().name, "abort", engine_.table().abort, each);
}

// Asks all ranks by the engine. A byte of 2 is one that the engine left as it was.
bool Job::ask(std::vector<uint8_t>& silent) const {
  plugrad_group_failure failure{};
  failure.struct_size = sizeof failure;
  failure.silent = silent.data();
  std::ranges::fill(silent, uint8_t{2});
  const bool could = !contained(engine_.table().failure, world_, &failure);
  silent[static_cast<size_t>(rank_)] = 0;
  return could && std::ranges::find(silent, uint8_t{2}) == silent.end();
}

Error Job::fail(const Call& call, int size, const Ending& ending) {
  const bool timed_out = ending.status == PLUGRAD_TIMED_OUT;
  if (!broken_) {
    const auto by_engine = [this](std::vector<uint8_t>& silent) { return ask(silent); };
    const std::string unknown = "which rank is lost is unknown";
    // An engine that refuses a call of this rank says why; the other ranks would wait.
    const std::string own = "rank " + std::to_string(rank_) + ": " + ending.reason;
    const std::string cause = ending.status == PLUGRAD_INVALID ? (watch_ ? watch_->accuse(own) : own)
                              : watch_                         ? watch_->find_cause(timed_out, by_engine)
                                                               : unknown;
    break_by(cause, timed_out ? Code::timed_out : Code::peer_lost);
  }
  const std::string end = timed_out ? " did not end within " + std::to_string(launch_.timeout.count()) + " ms" : " failed";
  const std::string which = call.number ? "collective " + std::to_string(call.number) + " of " : "";
  return error(call.what, which + "the group of " + ranks_text(size) + end + ": ",
               " (" + std::string(engine_.table().name) + ": " + ending.reason + ")");
}

Error Job::error(const std::string& what, const std::string& before, const std::string& after) const {
  const std::lock_guard lock(mutex_);
  return Error(code_, "[" + what.substr(0, what.find(' ')) + "] " + before + cause_ + after +
                          ". The group cannot be used any more; what was saved is whole: restart all ranks from the last "
                          "checkpoint");
}

}  // namespace plugrad::distributed
