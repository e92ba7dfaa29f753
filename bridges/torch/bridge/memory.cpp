#include <bridge/memory.hpp>

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <map>
#include <mutex>

namespace plugrad_torch {
namespace {
constexpr uint64_t kSpace = uint64_t{1} << 44, kAlignment = 64;

uint64_t reserved_space() {
  void* base = mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(base != MAP_FAILED, "plugrad: the process may not reserve 16 TB of addresses; is RLIMIT_AS set (ulimit -v)?");
  return reinterpret_cast<uint64_t>(base);
}

// The blocks by their addresses.
class Addresses {
 public:
  // Returns an address for the block, with room for its bytes.
  void* add(Block* block) {
    const uint64_t bytes = (std::max<uint64_t>(block->bytes(), 1) + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > kSpace / 2)
      C10_THROW_ERROR(OutOfMemoryError, "plugrad: a storage of " + std::to_string(block->bytes()) +
                                            " bytes exceeds the addresses of a process");
    const std::lock_guard lock(mutex_);
    // Addresses are given in rising order and reused only after all of the space, so the next gap is almost always here.
    for (bool wrapped = false;;) {
      if (next_ + bytes > kSpace) {
        TORCH_CHECK(!wrapped, "plugrad: no free address for a storage of ", block->bytes(), " bytes");
        next_ = 0, wrapped = true;
      }
      const auto above = blocks_.lower_bound(next_);
      if (above != blocks_.begin()) {
        const auto below = std::prev(above);
        if (const uint64_t end = below->first + below->second.bytes; end > next_) {
          next_ = end;
          continue;
        }
      }
      if (above == blocks_.end() || above->first >= next_ + bytes) {
        blocks_.emplace_hint(above, next_, Entry{block, bytes});
        return reinterpret_cast<void*>(base_ + std::exchange(next_, next_ + bytes));
      }
      next_ = above->first + above->second.bytes;
    }
  }
  void remove(const void* address) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(reinterpret_cast<uint64_t>(address) - base_);
  }
  Place find(const void* address) {
    const uint64_t at = reinterpret_cast<uint64_t>(address) - base_;
    if (at >= kSpace) return {};
    const std::lock_guard lock(mutex_);
    auto above = blocks_.upper_bound(at);
    if (above == blocks_.begin()) return {};
    const auto& [start, entry] = *--above;
    if (at >= start + entry.bytes) return {};
    return {entry.block, at - start};
  }

 private:
  struct Entry {
    Block* block;
    uint64_t bytes;
  };
  const uint64_t base_ = reserved_space();
  std::mutex mutex_;
  std::map<uint64_t, Entry> blocks_;
  uint64_t next_ = kAlignment;
};
Addresses& addresses() {
  static Addresses& all = *new Addresses;
  return all;
}

// The context of a storage: the block and its address.
struct Held {
  template <class... Args>
  explicit Held(Args&&... args) : block(std::forward<Args>(args)...), address(addresses().add(&block)) {}
  Held(const Held&) = delete;
  ~Held() { addresses().remove(address); }
  Block block;
  void* address;
};
void release(void* context) { delete static_cast<Held*>(context); }

std::mutex first_use;

c10::CachingAllocator::StatArray count_of(uint64_t now, uint64_t peak) {
  c10::CachingAllocator::StatArray all;
  all[0].current = static_cast<int64_t>(now), all[0].peak = static_cast<int64_t>(peak);
  return all;
}

// torch.accelerator's view of memory: plugrad's own allocator, which caches for all threads and streams.
class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return unused_memory(bytes, current_device()); }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, size_t bytes) const override;
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex i = 0; i < device_count(); ++i)
      if (is_open(i)) device_at(i).trim();
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // plugrad orders reuse by itself
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    const plugrad::MemoryStats memory = device_at(index).memory();
    stats.allocated_bytes = stats.active_bytes = stats.requested_bytes = count_of(memory.active, memory.peak);
    stats.reserved_bytes = count_of(memory.reserved, memory.reserved);
    stats.segment = count_of(memory.segments, memory.segments);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex index) override { device_at(index).reset_peak(); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override { return device_at(index).physical_memory(); }
};

plugrad::Tensor bytes_at(const void* address, size_t bytes) {
  const Place place = addresses().find(address);
  TORCH_CHECK(place.block, "plugrad: ", address, " is not an address of a device");
  return plugrad::tensor_over(place.block->memory(), plugrad::DType::u8, place.offset, {static_cast<int64_t>(bytes)}, {1});
}
void Allocator::copy_data(void* to, const void* from, size_t bytes) const {
  if (bytes) bytes_at(to, bytes).copy_(bytes_at(from, bytes));
}
}  // namespace

const plugrad::Memory& Block::memory() {
  if (!has_memory()) {
    const std::lock_guard lock(first_use);
    if (!has_memory()) {
      memory_ = plugrad::Memory(device_at(index_), bytes_);
      has_memory_.store(true, std::memory_order_release);
    }
  }
  return memory_;
}
bool Block::adopt(plugrad::Memory memory) {
  const std::lock_guard lock(first_use);
  if (has_memory() || memory.bytes() < bytes_) return false;
  memory_ = std::move(memory);
  has_memory_.store(true, std::memory_order_release);
  return true;
}

c10::DataPtr unused_memory(uint64_t bytes, c10::DeviceIndex index) {
  if (!bytes) return {nullptr, at_index(index)};
  auto* held = new Held(index, bytes);
  return {held->address, held, release, at_index(index)};
}
c10::DataPtr storage_memory(plugrad::Memory memory, c10::DeviceIndex index) {
  auto* held = new Held(std::move(memory), index);
  return {held->address, held, release, at_index(index)};
}

Place place_of(const c10::DataPtr& memory) {
  if (memory.get_deleter() == release) {
    auto* held = static_cast<Held*>(memory.get_context());
    return {&held->block, reinterpret_cast<uint64_t>(memory.get()) - reinterpret_cast<uint64_t>(held->address)};
  }
  return addresses().find(memory.get());
}

c10::DeviceAllocator& allocator() {
  static Allocator& only = *new Allocator;
  return only;
}

}  // namespace plugrad_torch
