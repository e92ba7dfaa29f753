// Memory of a device, or host memory pinned by it: reserved address space, the blocks allocated in it, and the last
// accesses to each granule. Guarded by World::mutex, except for the bytes themselves.
#pragma once
#include <plugins/sim/clocks.hpp>

#include <map>

namespace plugrad::sim {

// Reserves zeroed address space; nothing is committed, and nothing is ever unmapped.
void* reserve_bytes(uint64_t bytes, bool accessible);
template <class T> T* reserve(uint64_t count) { return static_cast<T*>(reserve_bytes(count * sizeof(T), true)); }

struct Block {
  uint64_t offset, bytes;  // in its region; bytes as requested
};

class Region {
 public:
  // hidden: handles point to inaccessible memory, apart from the real bytes; else a handle is the address of the bytes.
  Region(uint64_t bytes, bool hidden);

  // Allocates a block, or returns nothing if no gap is large enough.
  std::optional<Block> take(uint64_t bytes);
  void give(const Block& block);
  // Fills a block with poison, 0xff: a NaN in every floating dtype, an index out of range, an invalid bool.
  void poison(const Block& block);
  void guard(const Block& block);  // writes a pattern behind the block
  bool guarded(const Block& block) const;

  char* handle(const Block& block) const { return handles_ + block.offset; }
  std::optional<Block> find(const void* handle) const;        // the block beginning there
  std::optional<Block> containing(const void* handle) const;  // the block it points into
  bool owns(const void* handle) const { return handle >= handles_ && handle < handles_ + size_; }
  uint64_t offset(const void* handle) const { return static_cast<uint64_t>(static_cast<const char*>(handle) - handles_); }
  char* bytes(uint64_t offset) const { return bytes_ + offset; }
  std::span<Granule> granules(uint64_t offset, uint64_t bytes) const;

  uint64_t size() const { return size_; }
  uint64_t allocated() const { return allocated_; }  // bytes as requested
  uint64_t largest_gap() const;

 private:
  static uint64_t footprint(uint64_t bytes);
  uint64_t size_;
  char *handles_, *bytes_;
  Granule* granules_;
  std::map<uint64_t, uint64_t> gaps_;  // offset, bytes; no two are adjacent
  std::map<uint64_t, uint64_t> live_;  // offset, bytes as requested
  uint64_t allocated_ = 0;
};

}  // namespace plugrad::sim
