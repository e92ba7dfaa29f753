#include <core/distributed/composition.hpp>

#include <cstring>

namespace plugrad::distributed {
namespace {
const char* at(const void* memory, uint64_t bytes) { return static_cast<const char*>(memory) + bytes; }
char* at(void* memory, uint64_t bytes) { return static_cast<char*>(memory) + bytes; }

// The messages of this rank that together are a collective.
class Messages {
 public:
  Messages(const plugrad_collective& whole, int rank, int size) : whole_(whole), rank_(rank), size_(size) {}

  std::vector<plugrad_collective> take() {
    switch (whole_.kind) {
      case PLUGRAD_COLL_BROADCAST: broadcast(); break;
      case PLUGRAD_COLL_ALL_GATHER: all_gather(); break;
      case PLUGRAD_COLL_ALL_TO_ALL: all_to_all(); break;
      default: barrier(); break;
    }
    return std::move(list_);
  }

 private:
  void message(int peer, const void* from, void* to, uint64_t count) {
    plugrad_collective c = whole_;
    c.kind = from ? PLUGRAD_COLL_SEND : PLUGRAD_COLL_RECV;
    c.from = from;
    c.to = to;
    c.count = count;
    c.counts = nullptr;
    c.how = 0;
    c.peer = peer;
    list_.push_back(c);
  }
  template <class F> void for_others(F f) {
    for (int i = 0; i < size_; ++i)
      if (i != rank_) f(i);
  }
  void broadcast() {
    if (whole_.peer != rank_) return message(whole_.peer, nullptr, whole_.to, whole_.count);
    for_others([&](int i) { message(i, whole_.from, nullptr, whole_.count); });
  }
  void all_gather() {
    const uint64_t bytes = whole_.count * whole_.item;
    if (bytes) std::memcpy(at(whole_.to, static_cast<uint64_t>(rank_) * bytes), whole_.from, bytes);
    for_others([&](int i) { message(i, nullptr, at(whole_.to, static_cast<uint64_t>(i) * bytes), whole_.count); });
    for_others([&](int i) { message(i, whole_.from, nullptr, whole_.count); });
  }
  void all_to_all() {
    uint64_t out = 0, in = 0;
    const void* mine = nullptr;
    void* kept = nullptr;
    uint64_t own = 0;
    for (int i = 0; i < size_; ++i) {
      const uint64_t sent = whole_.counts ? whole_.counts[i] : whole_.count;
      const uint64_t received = whole_.counts ? whole_.counts[size_ + i] : whole_.count;
      if (i == rank_) {
        mine = at(whole_.from, out);
        kept = at(whole_.to, in);
        own = sent * whole_.item;
      } else {
        message(i, nullptr, at(whole_.to, in), received);
        message(i, at(whole_.from, out), nullptr, sent);
      }
      out += sent * whole_.item;
      in += received * whole_.item;
    }
    if (own) std::memcpy(kept, mine, own);
  }
  void barrier() {
    for_others([&](int i) { message(i, nullptr, &bytes_[0], 0); });
    for_others([&](int i) { message(i, &bytes_[1], nullptr, 0); });
  }

  const plugrad_collective& whole_;
  int rank_, size_;
  std::vector<plugrad_collective> list_;
  inline static char bytes_[2];  // messages of no elements need an address
};
}  // namespace

// All are in flight together, because one after the other they would wait for each other's ranks.
Ending Composer::messages(const std::vector<plugrad_collective>& list) const {
  const auto deadline = Engine::Clock::now() + timeout;
  size_t left = 0;
  Ending worst;
  const auto end = [&](const Ending& ending) {
    --left;
    if (ending.status && !worst.status) worst = ending;
  };
  std::vector<const void*> owners;
  for (const plugrad_collective& each : list) {
    ++left;
    owners.push_back(&each);
    const Ending started = engine.start({group, nullptr, deadline, ends_early, end, &each}, each);
    if (started.status) end(started);
    if (worst.status) break;
  }
  engine.complete(owners, [&] { return !left || worst.status; });
  if (worst.status) engine.drop(group, worst);
  return worst;
}

Ending Composer::compose(const plugrad_collective& c) const {
  if (c.kind == PLUGRAD_COLL_ALL_REDUCE || c.kind == PLUGRAD_COLL_REDUCE_SCATTER) return reduce(c, false);
  const std::vector<plugrad_collective> list = Messages(c, rank, size).take();
  return list.empty() ? Ending{} : messages(list);
}

Ending Composer::run(const plugrad_collective& collective) const {
  const Ending ending = engine.run(group, collective, timeout, ends_early);
  return ending.status == PLUGRAD_UNSUPPORTED ? compose(collective) : ending;
}

// Stores block `rank` of each rank's `from`.
Ending Composer::blocks_of_all(const plugrad_collective& c, const void* from, std::vector<char>& blocks) const {
  blocks.resize(static_cast<size_t>(size) * c.count * c.item);
  plugrad_collective exchange = c;
  exchange.kind = PLUGRAD_COLL_ALL_TO_ALL;
  exchange.from = from;
  exchange.to = blocks.data();
  exchange.how = 0;
  return run(exchange);
}

Ending Composer::reduce(const plugrad_collective& c, bool average) const {
  const auto dtype = static_cast<uint8_t>(c.dtype);
  std::vector<char> padded, blocks;
  if (c.kind == PLUGRAD_COLL_REDUCE_SCATTER) {
    const Ending ending = blocks_of_all(c, c.from, blocks);
    if (!ending.status) reduce_rows(dtype, c.how, average, blocks.data(), size, c.count, c.to);
    else leave_to_engine(std::move(blocks));
    return ending;
  }
  const auto ranks = static_cast<uint64_t>(size);
  plugrad_collective part = c;
  part.count = (c.count + ranks - 1) / ranks;
  const uint64_t bytes = c.count * c.item, whole = part.count * ranks * c.item;
  const bool fits = bytes == whole;
  if (!fits) {
    padded.resize(whole);
    std::memcpy(padded.data(), c.from, bytes);
  }
  if (const Ending ending = blocks_of_all(part, fits ? c.from : padded.data(), blocks); ending.status) {
    leave_to_engine(std::move(padded));
    leave_to_engine(std::move(blocks));
    return ending;
  }
  reduce_rows(dtype, c.how, average, blocks.data(), size, part.count, blocks.data());
  part.kind = PLUGRAD_COLL_ALL_GATHER;
  part.from = blocks.data();
  part.to = fits ? c.to : padded.data();
  part.how = 0;
  const Ending ending = run(part);
  if (ending.status) {
    leave_to_engine(std::move(padded));
    leave_to_engine(std::move(blocks));
  } else if (!fits) {
    std::memcpy(c.to, padded.data(), bytes);
  }
  return ending;
}

}  // namespace plugrad::distributed
