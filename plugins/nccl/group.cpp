#include <plugins/nccl/group.hpp>

#include <plugins/nccl/calls.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

using nccl::Connection;
using nccl::Failure;
using nccl::require;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {
const nccl::Driver& driver() { return nccl::libraries().driver; }
constexpr std::chrono::microseconds kNap{50};
constexpr milliseconds kLastWait{5000};  // for NCCL's calls at the end, which may wait for other ranks

// The groups of this process: while one waits, the messages of all go on. [one-thread]
std::set<plugrad_group*>& groups() {
  static auto& all = *new std::set<plugrad_group*>;
  return all;
}
}  // namespace

plugrad_group::plugrad_group(const plugrad_store& store, std::string prefix, int rank, int size, uint64_t timeout)
    : store_(store), prefix_(std::move(prefix)), rank_(rank), size_(size), timeout_(timeout) {
  groups().insert(this);
}

// Ranks finalize all connections before they destroy one: to destroy one waits for the same of its other ranks.
plugrad_group::~plugrad_group() {
  groups().erase(this);
  if (!works_.empty()) abort();  // the other ranks do not know of a message that nobody waits for
  if (!gate_.broken) {
    std::vector<Connection*> whole;
    if (all_ && all_->is_open()) whole.push_back(all_.get());
    for (const auto* channels : {&to_, &of_})
      for (const auto& [peer, each] : *channels)
        if (each->is_open()) whole.push_back(each.get());
    try {
      for (Connection* each : whole) each->call([](nccl::Comm* comm) { return nccl::libraries().nccl.finalize(comm); });
      const auto all_done = [&] { return std::ranges::all_of(whole, [](Connection* each) { return each->advance(); }); };
      wait_until(all_done, "the other ranks do not leave");
      nccl::end(release(), nccl::libraries().nccl.destroy, kLastWait);
    } catch (const Failure&) {
      abort();
    }
  }
  while (!works_.empty()) forget(works_.front().get());
}

// --- Waiting.

void plugrad_group::require_whole() {
  if (gate_.broken) throw Failure{PLUGRAD_PEER_LOST, reason()};
}

void plugrad_group::wait_until(const std::function<bool()>& ready, const std::string& what) const {
  for (const auto end = Clock::now() + milliseconds(timeout_); !ready();) {
    std::this_thread::sleep_for(kNap);
    advance_all_messages();
    if (Clock::now() > end) throw Failure{PLUGRAD_TIMED_OUT, what};
  }
}

// Waits until the ranks are connected, and NCCL has done with the call before.
void plugrad_group::settle(Connection& connection) {
  wait_until([&] { return connection.advance(); }, "the other ranks do not come");
}

void plugrad_group::advance_all_messages() {
  for (plugrad_group* each : groups()) {
    if (each->gate_.broken) continue;
    try {
      each->advance_messages();
    } catch (const Failure& failure) {  // its works report it
      each->break_by(failure.why);
    }
  }
}

// --- Values in the store.

std::string plugrad_group::told(const std::string& key) const {
  char text[256] = "";
  uint64_t size = 0;
  const auto is_there = [&] {
    const plugrad_status status = store_.get(&store_, (prefix_ + key).c_str(), text, sizeof text, &size, 10);
    if (status && status != PLUGRAD_TIMED_OUT) throw Failure{PLUGRAD_PEER_LOST, "the store cannot be reached"};
    return !status;
  };
  wait_until(is_there, "a rank did not come: the store has no " + prefix_ + key);
  return {text, std::min<size_t>(size, sizeof text)};
}

void plugrad_group::meet() const {
  const std::string own = nccl::libraries().version, key = prefix_ + ".version." + std::to_string(rank_);
  if (store_.set(&store_, key.c_str(), own.data(), own.size()))
    throw Failure{PLUGRAD_PEER_LOST, "the store does not take " + key};
  for (int i = 0; i < size_; ++i)
    if (const std::string other = told(".version." + std::to_string(i)); other != own)
      throw Failure{PLUGRAD_INVALID, "rank " + std::to_string(rank_) + " has NCCL " + own + ", and rank " +
                                         std::to_string(i) + " " + other + ": install one version"};
}

std::unique_ptr<plugrad_group> plugrad_group::split(int32_t color, uint64_t number) {
  require_whole();
  const std::string key = ".split." + std::to_string(number) + ".", own = std::to_string(color);
  if (store_.set(&store_, (prefix_ + key + std::to_string(rank_)).c_str(), own.data(), own.size()))
    throw Failure{PLUGRAD_PEER_LOST, "the store does not take a color"};
  int rank = 0, size = 0;
  for (int i = 0; i < size_; ++i) {
    if (told(key + std::to_string(i)) != own) continue;
    rank += i < rank_;
    ++size;
  }
  if (color < 0) return nullptr;
  return std::make_unique<plugrad_group>(store_, prefix_ + "." + std::to_string(number) + "_" + own, rank, size, timeout_);
}

// --- Works.

plugrad_work& plugrad_group::made() {
  plugrad_work& work = *works_.emplace_back(std::make_unique<plugrad_work>());
  work.group = this;
  return work;
}

void plugrad_group::forget(plugrad_work* work) {
  if (work->end) driver().destroy_event(work->end);
  staging_.give(work->block);
  messages_.remove(work);
  works_.remove_if([&](const auto& each) { return each.get() == work; });
}

plugrad_work* plugrad_group::start(const plugrad_collective& c) {
  require_whole();
  if (!nccl::offers(c)) return nullptr;
  nccl::own_device().choose(c.stream ? c.device : -1);
  plugrad_work& work = made();
  if (c.kind == PLUGRAD_COLL_SEND || c.kind == PLUGRAD_COLL_RECV) {
    work.message = c;
    work.connection = &channel(c);
    messages_.push_back(&work);
    advance_messages();
  } else if (c.count || c.counts || c.kind == PLUGRAD_COLL_BARRIER) {
    run(work, c);
  }
  return &work;
}

// Memory of the host goes by a block. A result in place has the place of the elements sent.
void plugrad_group::run(plugrad_work& work, const plugrad_collective& c) {
  if (!all_) all_ = std::make_unique<Connection>(store_, gate_, prefix_ + ".all", rank_, size_);
  Connection& ranks = *(work.connection = all_.get());
  settle(ranks);
  nccl::Places places{static_cast<const char*>(c.from), static_cast<char*>(c.to), static_cast<nccl::Stream*>(c.stream)};
  if (!c.stream) {
    const nccl::Sizes sizes = nccl::sizes_of(c, size_);
    work.place = sizes.is_in_place ? 0 : (sizes.from + 255) / 256 * 256;
    work.block = staging_.take(work.place + sizes.to);
    const bool is_read = c.kind != PLUGRAD_COLL_BARRIER && (c.kind != PLUGRAD_COLL_BROADCAST || c.peer == rank_);
    const void* from = c.kind == PLUGRAD_COLL_BROADCAST ? c.to : c.from;
    places = {work.block.device, work.block.device + work.place, ranks.stream()};
    if (is_read && sizes.from) {
      std::memcpy(work.block.host, from, sizes.from);
      require(driver().upload(reinterpret_cast<nccl::DeviceAddress>(work.block.device), work.block.host, sizes.from,
                              places.stream),
              "cuMemcpyHtoDAsync");
    }
    work.to = c.kind == PLUGRAD_COLL_BARRIER ? nullptr : c.to;
    work.bytes = sizes.to;
  }
  ranks.call([&](nccl::Comm* comm) { return nccl::call(c, places, size_, comm); });
  settle(ranks);
  if (work.to && work.bytes)
    require(
        driver().download(work.block.host + work.place,
                          reinterpret_cast<nccl::DeviceAddress>(work.block.device + work.place), work.bytes, places.stream),
        "cuMemcpyDtoHAsync");
  require(driver().create_event(&work.end, nccl::kDisableTiming), "cuEventCreate");
  require(driver().record(work.end, places.stream), "cuEventRecord");
}

bool plugrad_group::test(plugrad_work* work) {
  require_whole();
  advance_messages();
  if (work->message.kind && !work->end) return false;
  if (!work->end) return forget(work), true;
  work->connection->advance();  // throws for errors of NCCL since the call
  if (const int result = driver().query(work->end); result == nccl::kNotReady) return false;
  else require(result, "cuEventQuery");
  if (work->to) std::memcpy(work->to, work->block.host + work->place, work->bytes);
  forget(work);
  return true;
}

// --- The end.

void plugrad_group::break_by(const std::string& reason) {
  const std::lock_guard lock(why_mutex_);
  if (gate_.broken) return;
  why_ = reason;
  gate_.broken = true;
}

std::string plugrad_group::reason() {
  const std::lock_guard lock(why_mutex_);
  return why_;
}

std::vector<nccl::Comm*> plugrad_group::release() {
  std::vector<nccl::Comm*> comms;
  const auto add = [&](Connection& each) {
    if (nccl::Comm* comm = each.release()) comms.push_back(comm);
  };
  if (all_) add(*all_);
  for (const auto* channels : {&to_, &of_})
    for (const auto& [peer, each] : *channels) add(*each);
  return comms;
}

// A call of NCCL may be stuck on the communication thread: after a while, abort does not wait for it.
void plugrad_group::abort() {
  break_by("the group was aborted");
  std::vector<nccl::Comm*> comms;
  {
    std::unique_lock lock(gate_.mutex, std::defer_lock);
    (void)lock.try_lock_for(milliseconds(1000));
    comms = release();
  }
  nccl::end(comms, nccl::libraries().nccl.abort, kLastWait);
}
