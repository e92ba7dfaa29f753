#include <plugins/sim/clocks.hpp>

#include <plugins/sim/region.hpp>

#include <algorithm>

namespace plugrad::sim {
namespace {
constexpr uint64_t kReaders = 1u << 26;
}

Clocks::Clocks() : readers_(reserve<Reader>(kReaders)) {}

uint32_t Clocks::add_stream(const std::atomic<bool>* lost) {
  lost_.push_back(lost);
  host_.push_back(0);
  clocks_.emplace_back();
  history_.emplace_back();
  return static_cast<uint32_t>(lost_.size() - 1);
}

void Clocks::join(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void Clocks::host_learned(uint32_t stream, uint64_t number, bool transitive) {
  host_[stream] = std::max(host_[stream], number);
  std::deque<Since>& history = history_[stream];
  while (!history.empty() && history.front().number <= number) {
    if (transitive) join(host_, history.front().clock);
    history.pop_front();
  }
}

void Clocks::joined(uint32_t stream, uint64_t next, Epoch other) {
  Clock& clock = clocks_[stream];
  const std::deque<Since>& theirs = history_[other.stream];
  const auto after = std::upper_bound(theirs.begin(), theirs.end(), other.number,
                                      [](uint64_t number, const Since& since) { return number < since.number; });
  if (after != theirs.begin()) join(clock, std::prev(after)->clock);
  if (clock.size() <= other.stream) clock.resize(other.stream + 1);
  clock[other.stream] = std::max(clock[other.stream], other.number);
  keep(stream, next);
}

void Clocks::followed(uint32_t stream, uint64_t next, Epoch other) {
  joined(stream, next, other);
  join(clocks_[stream], clocks_[other.stream]);
  keep(stream, next);
}

void Clocks::keep(uint32_t stream, uint64_t next) {
  std::deque<Since>& history = history_[stream];
  if (!history.empty() && history.back().number == next) history.back().clock = clocks_[stream];
  else history.push_back({next, clocks_[stream]});
}

bool Clocks::ordered(uint32_t stream, Epoch earlier) const {
  return !earlier.number || earlier.stream == stream || host_[earlier.stream] >= earlier.number ||
         (stream != kHost && at(clocks_[stream], earlier.stream) >= earlier.number) || lost_[earlier.stream]->load();
}

std::optional<Conflict> Clocks::access(Epoch by, std::span<Granule> granules, bool write) {
  std::optional<Conflict> conflict;
  Epoch known;  // most granules of a buffer have the same writer
  for (size_t i = 0; i < granules.size(); ++i) {
    Granule& g = granules[i];
    const Epoch writer{g.writer, g.written};
    if (writer.stream != known.stream || writer.number != known.number) {
      if (ordered(by.stream, writer)) known = writer;
      else if (!conflict) conflict = {writer, true, i};
    }
    if (!write) {
      add_reader(by, g);
      continue;
    }
    if (const auto reader = unordered_reader(by.stream, g); reader && !conflict) conflict = {*reader, false, i};
    drop_readers(g);
    g.writer = by.stream;
    g.written = by.number;
  }
  return conflict;
}

std::optional<Conflict> Clocks::in_flight(std::span<const Granule> granules) const {
  for (size_t i = 0; i < granules.size(); ++i) {
    const Epoch writer{granules[i].writer, granules[i].written};
    if (!ordered(kHost, writer)) return Conflict{writer, true, i};
    if (const auto reader = unordered_reader(kHost, granules[i])) return Conflict{*reader, false, i};
  }
  return {};
}

void Clocks::forget(std::span<Granule> granules) {
  for (Granule& g : granules) {
    drop_readers(g);
    g = {};
  }
}

std::optional<Epoch> Clocks::unordered_reader(uint32_t stream, const Granule& g) const {
  if (!g.read) return {};
  if (!(g.reader & kMany)) {
    const Epoch reader{g.reader, g.read};
    return ordered(stream, reader) ? std::nullopt : std::optional(reader);
  }
  for (uint32_t i = g.reader; i != kMany; i = readers_[i & ~kMany].next) {
    const Reader& r = readers_[i & ~kMany];
    if (!ordered(stream, {r.stream, r.number})) return Epoch{r.stream, r.number};
  }
  return {};
}

// If the new reader is ordered after an earlier reader, the earlier reader needs no record: work ordered after the new
// reader is ordered after both.
void Clocks::add_reader(Epoch by, Granule& g) {
  if (!(g.reader & kMany)) {
    if (g.read && !ordered(by.stream, {g.reader, g.read})) {
      g.reader = new_reader(by, new_reader({g.reader, g.read}, kMany));
    } else {
      g.reader = by.stream;
      g.read = by.number;
    }
    return;
  }
  for (uint32_t i = g.reader; i != kMany; i = readers_[i & ~kMany].next)
    if (readers_[i & ~kMany].stream == by.stream) {
      readers_[i & ~kMany].number = by.number;
      return;
    }
  g.reader = new_reader(by, g.reader);
}

// A list consists of links with kMany set. kMany itself ends it: as a link it means the unused record 0.
uint32_t Clocks::new_reader(Epoch by, uint32_t next) {
  uint32_t link = free_reader_;
  if (link != kMany) free_reader_ = readers_[link & ~kMany].next;
  else if (used_readers_ + 1 < kReaders) link = ++used_readers_ | kMany;
  else return next;  // beyond 67 million unordered readers, further ones are not tracked
  readers_[link & ~kMany] = {by.number, by.stream, next};
  return link;
}

void Clocks::drop_readers(Granule& g) {
  if (g.reader & kMany)
    for (uint32_t i = g.reader; i != kMany;) {
      const uint32_t next = readers_[i & ~kMany].next;
      readers_[i & ~kMany].next = free_reader_;
      free_reader_ = i;
      i = next;
    }
  g.reader = 0;
  g.read = 0;
}

}  // namespace plugrad::sim
