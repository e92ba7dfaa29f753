// The communicator "sim": an engine for tests of the core. It moves bytes by another communicator, and behaves badly as the
// options say:
//   engine    the absolute path of the other communicator's file, whose calls may wait, such as gloo's
//   decline   all_reduce+all_gather+..: kinds that it lacks; "all" leaves only send and recv
//   delay     each work ends up to so many milliseconds late, so sends and receives end in another order than they began
//   fail      the n-th call of start fails, on the rank `fail_rank` (0)
//   wrong     1: results have a wrong bit
// Unlike the other communicator, it is polled.
#include <plugrad/sdk/communicator.h>

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

const plugrad_host* host = nullptr;
const plugrad_communicator* engine = nullptr;
thread_local std::string reported;

// The engine's host: its reports wait until the communication thread asks.
const plugrad_host& inner_host() {
  static const plugrad_host made = [] {
    plugrad_host copy = *host;
    copy.report = [](const plugrad_host*, plugrad_status, const char* text) { reported = text; };
    return copy;
  }();
  return made;
}

// What all groups of the process share.
struct Settings {
  std::set<std::string> declined;
  int delay = 0, fail = 0, fail_rank = 0;
  bool wrong = false;
  std::atomic<int> starts{0};
  std::mt19937 random;
};

// Runs the engine's waiting calls, one after another.
class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    post({});
    thread_.join();
  }
  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return !tasks_.empty(); });
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      if (!task) return;
      task();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_;
};

// What becomes of a work. A thread may still write it when the work is given up.
struct Result {
  std::mutex mutex;
  bool ended = false;
  Clock::time_point visible;
  plugrad_status status = PLUGRAD_OK;
  std::string reason;
  void end(plugrad_status with, milliseconds late) {
    const std::lock_guard lock(mutex);
    status = with;
    reason = with ? reported : "";
    visible = Clock::now() + late;
    ended = true;
  }
};
}  // namespace

struct plugrad_group {
  std::shared_ptr<Settings> settings;
  plugrad_group* inner = nullptr;
  int rank = 0, size = 0;
  uint64_t timeout = 0;
  std::unique_ptr<Worker> worker = std::make_unique<Worker>();
};
struct plugrad_work {
  std::shared_ptr<Result> result;
};

namespace {
plugrad_status report(plugrad_status status, const std::string& why) {
  host->report(host, status, why.c_str());
  return status;
}

std::string option(const plugrad_options& options, const char* key) {
  for (uint32_t i = 0; i < options.count; ++i)
    if (!std::strcmp(options.items[i].key, key)) return options.items[i].value;
  return "";
}

std::shared_ptr<Settings> settings_of(const plugrad_options& options, int rank) {
  auto made = std::make_shared<Settings>();
  std::istringstream list(option(options, "decline"));
  for (std::string kind; std::getline(list, kind, '+');) made->declined.insert(kind);
  made->delay = std::atoi(option(options, "delay").c_str());
  made->fail = std::atoi(option(options, "fail").c_str());
  made->fail_rank = std::atoi(option(options, "fail_rank").c_str());
  made->wrong = option(options, "wrong") == "1";
  made->random.seed(static_cast<uint32_t>(rank) + 1);
  return made;
}

plugrad_status launched(const plugrad_host*, int32_t* rank, int32_t* size) {
  *rank = *size = -1;
  return PLUGRAD_OK;
}

plugrad_status load(const std::string& path) {
  if (engine) return PLUGRAD_OK;
  void* const file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!file) return report(PLUGRAD_INVALID, dlerror());
  const auto entry = reinterpret_cast<plugrad_communicator_entry>(dlsym(file, "plugrad_communicator_v0"));
  if (!entry) return report(PLUGRAD_INVALID, path + " is no communicator");
  engine = entry(&inner_host());
  return PLUGRAD_OK;
}

plugrad_status open(const plugrad_host* given, const plugrad_group_options* options, plugrad_group** made, int32_t* rank,
                    int32_t* size) {
  host = given;
  if (const plugrad_status status = load(option(options->options, "engine"))) return status;
  plugrad_group_options inner = *options;
  inner.options.count = 0;
  auto group = std::make_unique<plugrad_group>();
  if (const plugrad_status status = engine->open(&inner_host(), &inner, &group->inner, rank, size))
    return report(status, reported);
  group->settings = settings_of(options->options, *rank);
  group->rank = *rank;
  group->size = *size;
  group->timeout = options->timeout;
  *made = group.release();
  return PLUGRAD_OK;
}

plugrad_status split(plugrad_group* group, int32_t color, uint64_t number, plugrad_group** made, int32_t* rank,
                     int32_t* size) {
  *made = nullptr;
  auto part = std::make_unique<plugrad_group>();
  if (const plugrad_status status = engine->split(group->inner, color, number, &part->inner, rank, size))
    return report(status, reported);
  if (!part->inner) return PLUGRAD_OK;
  part->settings = group->settings;
  part->rank = *rank;
  part->size = *size;
  part->timeout = group->timeout;
  *made = part.release();
  return PLUGRAD_OK;
}

bool is_message(uint32_t kind) { return kind == PLUGRAD_COLL_SEND || kind == PLUGRAD_COLL_RECV; }

// The engine is asked on another thread, too late to decline, so sim declines what gloo would.
bool has(const Settings& settings, const plugrad_collective& c) {
  constexpr const char* kNames[] = {"", "barrier", "broadcast", "all_reduce", "reduce_scatter", "all_gather", "all_to_all"};
  if (is_message(c.kind)) return true;
  if (settings.declined.contains("all") || settings.declined.contains(kNames[c.kind])) return false;
  const bool adds = c.dtype == PLUGRAD_F32 || c.dtype == PLUGRAD_F64 || c.dtype == PLUGRAD_I64 || c.dtype == PLUGRAD_I32;
  return c.kind != PLUGRAD_COLL_REDUCE_SCATTER && (c.kind != PLUGRAD_COLL_ALL_REDUCE || adds);
}

// A collective that lives until the engine has started it.
struct Copied {
  Copied(const plugrad_collective& from, int size) : collective(from) {
    if (from.counts) counts.assign(from.counts, from.counts + 2 * size);
  }
  plugrad_collective collective;
  std::vector<uint64_t> counts;
};

void run(plugrad_group* group, Copied copied, const std::shared_ptr<Result>& result, milliseconds late) {
  plugrad_work* work = nullptr;
  if (!copied.counts.empty()) copied.collective.counts = copied.counts.data();
  if (const plugrad_status status = engine->start(group->inner, &copied.collective, &work)) return result->end(status, late);
  char* const spoilt =
      group->settings->wrong && copied.collective.count ? static_cast<char*>(copied.collective.to) : nullptr;
  const auto wait = [=, timeout = group->timeout] {
    const plugrad_status status = engine->wait(work, timeout);
    if (spoilt) *spoilt = static_cast<char>(*spoilt ^ 1);
    result->end(status, late);
  };
  // A receive may wait for what another rank sends after a later call of this rank.
  if (is_message(copied.collective.kind)) std::thread(wait).detach();
  else wait();
}

plugrad_status start(plugrad_group* group, const plugrad_collective* c, plugrad_work** made) {
  Settings& settings = *group->settings;
  if (!has(settings, *c)) return report(PLUGRAD_UNSUPPORTED, "sim declines this collective");
  if (++settings.starts == settings.fail && group->rank == settings.fail_rank)
    return report(PLUGRAD_PEER_LOST, "sim fails at call " + std::to_string(settings.fail));
  const milliseconds late(settings.random() % static_cast<uint32_t>(settings.delay + 1));
  const auto result = std::make_shared<Result>();
  group->worker->post([group, copied = Copied(*c, group->size), result, late] { run(group, copied, result, late); });
  *made = new plugrad_work{result};
  return PLUGRAD_OK;
}

plugrad_status test(plugrad_work* work, uint32_t* ended) {
  const std::shared_ptr<Result> result = work->result;
  const std::lock_guard lock(result->mutex);
  *ended = result->ended && Clock::now() >= result->visible;
  if (!*ended) return PLUGRAD_OK;
  delete work;
  return result->status ? report(result->status, result->reason) : PLUGRAD_OK;
}

plugrad_status failure(plugrad_group* group, plugrad_group_failure* failure) {
  return engine->failure(group->inner, failure);
}
void abort(plugrad_group* group) { engine->abort(group->inner); }
void close(plugrad_group* group) {
  group->worker.reset();
  engine->close(group->inner);
  delete group;
}
}  // namespace

extern "C" const plugrad_communicator* plugrad_communicator_v0(const plugrad_host*) {
  static const plugrad_communicator table = {sizeof table,
                                             0,
                                             PLUGRAD_COMMUNICATOR_LAYOUT,
                                             "sim",
                                             "sim",
                                             launched,
                                             open,
                                             split,
                                             start,
                                             test,
                                             nullptr,
                                             failure,
                                             abort,
                                             close,
                                             nullptr,
                                             0,
                                             0};
  return &table;
}
