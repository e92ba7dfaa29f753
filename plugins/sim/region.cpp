#include <plugins/sim/region.hpp>

#include <sys/mman.h>
#include <algorithm>
#include <cstring>
#include <new>

namespace plugrad::sim {
namespace {
constexpr int kPoison = 0xff;
constexpr char kGuardByte = char(0xa5);
constexpr uint64_t round_up(uint64_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }
}  // namespace

void* reserve_bytes(uint64_t bytes, bool accessible) {
  const int protection = accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
  void* space = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) throw std::bad_alloc();
  return space;
}

Region::Region(uint64_t bytes, bool hidden) : size_(round_up(bytes)) {
  bytes_ = reserve<char>(size_);
  handles_ = hidden ? static_cast<char*>(reserve_bytes(size_, false)) : bytes_;
  granules_ = reserve<Granule>(size_ / kGranule);
  gaps_.emplace(0, size_);
}

// Each block has a granule behind it, so that a write beyond its end hits no other block and is found by free.
uint64_t Region::footprint(uint64_t bytes) { return round_up(bytes) + kGranule; }

std::optional<Block> Region::take(uint64_t bytes) {
  if (bytes > size_) return {};
  const uint64_t wanted = footprint(bytes);
  const auto gap = std::ranges::find_if(gaps_, [&](const auto& g) { return g.second >= wanted; });
  if (gap == gaps_.end()) return {};
  const auto [offset, room] = *gap;
  gaps_.erase(gap);
  if (room > wanted) gaps_.emplace(offset + wanted, room - wanted);
  live_.emplace(offset, bytes);
  allocated_ += bytes;
  granules_[offset / kGranule].block = bytes;
  return Block{offset, bytes};
}

void Region::give(const Block& block) {
  live_.erase(block.offset);
  allocated_ -= block.bytes;
  uint64_t offset = block.offset, bytes = footprint(block.bytes);
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  gaps_.emplace(offset, bytes);
}

void Region::poison(const Block& block) { std::memset(bytes_ + block.offset, kPoison, block.bytes); }

void Region::guard(const Block& block) {
  std::memset(bytes_ + block.offset + block.bytes, kGuardByte, footprint(block.bytes) - block.bytes);
}

bool Region::guarded(const Block& block) const {
  const std::span<const char> behind(bytes_ + block.offset + block.bytes, footprint(block.bytes) - block.bytes);
  return std::ranges::all_of(behind, [](char byte) { return byte == kGuardByte; });
}

std::optional<Block> Region::find(const void* handle) const {
  if (!owns(handle) || offset(handle) % kGranule) return {};
  const uint64_t bytes = granules_[offset(handle) / kGranule].block;
  return bytes ? std::optional(Block{offset(handle), bytes}) : std::nullopt;
}

std::optional<Block> Region::containing(const void* handle) const {
  if (!owns(handle)) return {};
  const uint64_t at = offset(handle);
  const auto after = live_.upper_bound(at);
  if (after == live_.begin()) return {};
  const auto [begin, bytes] = *std::prev(after);
  return at < begin + bytes ? std::optional(Block{begin, bytes}) : std::nullopt;
}

std::span<Granule> Region::granules(uint64_t offset, uint64_t bytes) const {
  const uint64_t first = offset / kGranule, last = (offset + bytes - 1) / kGranule;
  return {granules_ + first, last - first + 1};
}

uint64_t Region::largest_gap() const {
  uint64_t largest = 0;
  for (const auto& [offset, bytes] : gaps_) largest = std::max(largest, bytes);
  return largest;
}

}  // namespace plugrad::sim
