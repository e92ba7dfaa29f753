#include <bridge/pinned.hpp>

#include <bridge/devices.hpp>

#include <map>
#include <memory>
#include <mutex>

namespace plugrad_torch {
namespace {
class PinnedBlocks {
 public:
  void* add(plugrad::PinnedMemory memory) {
    const std::lock_guard lock(mutex_);
    void* data = memory.data();
    blocks_.emplace(reinterpret_cast<uint64_t>(data), std::make_unique<plugrad::PinnedMemory>(std::move(memory)));
    return data;
  }
  void remove(const void* data) {
    std::unique_ptr<plugrad::PinnedMemory> last;  // its end waits for copies: outside the lock
    const std::lock_guard lock(mutex_);
    if (const auto found = blocks_.find(reinterpret_cast<uint64_t>(data)); found != blocks_.end()) {
      last = std::move(found->second);
      blocks_.erase(found);
    }
  }
  PinnedPlace find(const void* address) {
    const auto at = reinterpret_cast<uint64_t>(address);
    const std::lock_guard lock(mutex_);
    auto above = blocks_.upper_bound(at);
    if (above == blocks_.begin()) return {};
    const auto& [start, memory] = *--above;
    if (at >= start + memory->bytes()) return {};
    return {memory.get(), at - start};
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::unique_ptr<plugrad::PinnedMemory>> blocks_;
};
PinnedBlocks& blocks() {
  static PinnedBlocks& all = *new PinnedBlocks;
  return all;
}

void release(void* data) { blocks().remove(data); }

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (!bytes) return {nullptr, c10::Device(c10::DeviceType::CPU)};
    void* data = blocks().add(plugrad::PinnedMemory(device_at(current_device()), bytes));
    return {data, data, release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};
}  // namespace

PinnedPlace pinned_at(const void* address) { return blocks().find(address); }
c10::Allocator& pinned_allocator() {
  static Allocator& only = *new Allocator;
  return only;
}

}  // namespace plugrad_torch
