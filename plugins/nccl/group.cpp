#include <plugins/nccl/group.hpp>

#include <plugins/nccl/calls.hpp>

#include <chrono>
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
}  // namespace

plugrad_group::plugrad_group(const plugrad_store& store, std::string prefix, int rank, int size, uint64_t timeout)
    : store_(store), prefix_(std::move(prefix)), rank_(rank), size_(size), timeout_(timeout) {}

plugrad_group::~plugrad_group() {
  if (!broken_) {
    if (all_) all_->close(timeout_);
    for (const auto* channels : {&to_, &of_})
      for (const auto& [peer, each] : *channels) each->close(timeout_);
  }
  while (!works_.empty()) forget(works_.front().get());
}

// --- What ranks tell each other by the store.

std::string plugrad_group::told(const std::string& key) const {
  char text[256] = "";
  uint64_t size = 0;
  if (store_.get(&store_, (prefix_ + key).c_str(), text, sizeof text, &size, timeout_))
    throw Failure{PLUGRAD_TIMED_OUT, "a rank did not come: the store has no " + prefix_ + key};
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

void plugrad_group::require_whole() const {
  if (broken_) throw Failure{PLUGRAD_PEER_LOST, why_};
}

// Waits until the ranks are connected, and NCCL has done with the call before.
void plugrad_group::settle(Lock& lock, Connection& connection) {
  for (const auto end = Clock::now() + milliseconds(timeout_); !connection.advance();) {
    lock.unlock();
    std::this_thread::sleep_for(kNap);
    lock.lock();
    require_whole();
    if (Clock::now() > end) throw Failure{PLUGRAD_TIMED_OUT, "the other ranks do not come"};
  }
}

Connection& plugrad_group::connection(Lock& lock) {
  if (!all_) all_ = std::make_unique<Connection>(store_, prefix_ + ".all", rank_, size_);
  settle(lock, *all_);
  return *all_;
}

Connection& plugrad_group::channel(const plugrad_collective& message) {
  const bool sends = message.kind == PLUGRAD_COLL_SEND;
  auto& found = (sends ? to_ : of_)[message.peer];
  const int from = sends ? rank_ : message.peer, to = sends ? message.peer : rank_;
  const std::string key = prefix_ + ".message." + std::to_string(from) + "." + std::to_string(to);
  if (!found) found = std::make_unique<Connection>(store_, key, sends ? 0 : 1, 2);
  return *found;
}

plugrad_work* plugrad_group::start(const plugrad_collective& c) {
  Lock lock(mutex_);
  require_whole();
  if (!nccl::offers(c)) return nullptr;
  nccl::own_device().choose(c.stream ? c.device : -1);
  plugrad_work& work = made();
  if (c.kind == PLUGRAD_COLL_SEND || c.kind == PLUGRAD_COLL_RECV) {
    work.message = c;
    work.waits_for = &channel(c);
    messages_.push_back(&work);
    advance_messages();
  } else if (c.count || c.counts || c.kind == PLUGRAD_COLL_BARRIER) {
    run(lock, work, c);
  }
  return &work;
}

// Memory of the host goes by a block. A result in place has the place of the elements sent.
void plugrad_group::run(Lock& lock, plugrad_work& work, const plugrad_collective& c) {
  Connection& ranks = connection(lock);
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
  ranks.check(nccl::call(c, places, size_, ranks.comm()));
  settle(lock, ranks);
  if (work.to && work.bytes)
    require(
        driver().download(work.block.host + work.place,
                          reinterpret_cast<nccl::DeviceAddress>(work.block.device + work.place), work.bytes, places.stream),
        "cuMemcpyDtoHAsync");
  require(driver().create_event(&work.end, nccl::kDisableTiming), "cuEventCreate");
  require(driver().record(work.end, places.stream), "cuEventRecord");
}

void plugrad_group::run_message(plugrad_work& work) {
  const plugrad_collective& c = work.message;
  Connection& pair = *std::exchange(work.waits_for, nullptr);
  const bool sends = c.kind == PLUGRAD_COLL_SEND;
  const size_t bytes = c.count * c.item;
  work.block = staging_.take(bytes);
  const auto device = reinterpret_cast<nccl::DeviceAddress>(work.block.device);
  if (sends) {
    std::memcpy(work.block.host, c.from, bytes);
    require(driver().upload(device, work.block.host, bytes, pair.stream()), "cuMemcpyHtoDAsync");
  }
  const nccl::Functions& f = nccl::libraries().nccl;
  const int peer = sends ? 1 : 0;
  pair.check(sends ? f.send(work.block.device, bytes, nccl::kUint8, peer, pair.comm(), pair.stream())
                   : f.recv(work.block.device, bytes, nccl::kUint8, peer, pair.comm(), pair.stream()));
}

// Gives NCCL the messages whose connections are ready, in their order.
void plugrad_group::advance_messages() {
  std::set<const Connection*> busy;
  for (auto each = messages_.begin(); each != messages_.end();) {
    plugrad_work& work = **each;
    const bool is_sent = !work.waits_for;  // and NCCL may still be at it
    Connection& pair = is_sent ? channel(work.message) : *work.waits_for;
    if (busy.contains(&pair) || !pair.advance()) {
      busy.insert(&pair);
      ++each;
      continue;
    }
    if (!is_sent) {
      run_message(work);
      continue;
    }
    const bool receives = work.message.kind == PLUGRAD_COLL_RECV;
    work.to = receives ? work.message.to : nullptr;
    work.bytes = receives ? work.message.count * work.message.item : 0;
    if (work.bytes)
      require(driver().download(work.block.host, reinterpret_cast<nccl::DeviceAddress>(work.block.device), work.bytes,
                                pair.stream()),
              "cuMemcpyDtoHAsync");
    require(driver().create_event(&work.end, nccl::kDisableTiming), "cuEventCreate");
    require(driver().record(work.end, pair.stream()), "cuEventRecord");
    each = messages_.erase(each);
  }
}

bool plugrad_group::test(plugrad_work* work) {
  const Lock lock(mutex_);
  require_whole();
  advance_messages();
  if (work->message.kind && !work->end) return false;
  if (!work->end) return forget(work), true;
  if (all_ && all_->comm()) all_->advance();
  if (const int result = driver().query(work->end); result == nccl::kNotReady) return false;
  else require(result, "cuEventQuery");
  if (work->to) std::memcpy(work->to, work->block.host + work->place, work->bytes);
  forget(work);
  return true;
}

// --- The end.

void plugrad_group::break_by(const std::string& reason) {
  const Lock lock(mutex_);
  if (broken_) return;
  why_ = reason;
  broken_ = true;
}

std::string plugrad_group::reason() {
  const Lock lock(mutex_);
  return why_;
}

void plugrad_group::abort() {
  break_by("the group was aborted");
  const Lock lock(mutex_);
  if (all_) all_->abort();
  for (const auto* channels : {&to_, &of_})
    for (const auto& [peer, each] : *channels) each->abort();
}
