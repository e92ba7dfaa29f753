// Memory of a Vulkan device. Drivers allow some thousand allocations, so buffers below 16 MiB share chunks of 64 MiB.
#pragma once
#include <backends/vulkan/api.hpp>
#include <backends/vulkan/driver.hpp>

#include <map>
#include <memory>
#include <mutex>

namespace plugrad::vulkan {

// Memory, and a VkBuffer for all of it.
struct Memory {
  VkBuffer buffer = nullptr;
  VkDeviceMemory memory = nullptr;
  VkDeviceAddress address = 0;
  char* mapped = nullptr;  // of host memory
  uint64_t bytes = 0;
};

// A part of a VkBuffer.
struct Place {
  VkBuffer buffer;
  uint64_t offset;
};

class Device;

// Thread-safe. Nothing is released after the device was lost.
class Heap {
 public:
  explicit Heap(Device& device);

  // Makes memory of its own: on the device, or on the host, visible to the device.
  Memory make(uint64_t bytes, bool on_host);
  void release(const Memory& memory) noexcept;

  // Buffers of device memory, by their address on the device.
  uint64_t allocate(uint64_t bytes);
  void free(uint64_t address) noexcept;
  Place find(uint64_t address);

  // Host memory for direct copies by the device.
  void* pin(uint64_t bytes);
  void unpin(const void* address) noexcept;
  Place find_pinned(const void* address);

  uint64_t installed() const { return installed_; }
  uint64_t available();

 private:
  struct Chunk : Memory {
    std::map<uint64_t, uint64_t> holes, used;  // bytes by offset
  };
  uint32_t type_of(uint32_t allowed, bool on_host) const;
  uint64_t cut(Chunk& chunk, uint64_t bytes);
  void fill_hole(Chunk& chunk, uint64_t offset, uint64_t bytes);

  Device& device_;
  VkPhysicalDeviceMemoryProperties types_;
  uint32_t heap_ = 0;  // the index of the largest heap on the device
  uint64_t installed_ = 0, used_ = 0;
  std::mutex mutex_;
  std::map<uint64_t, Chunk> chunks_;      // by address
  std::map<const char*, Memory> pinned_;  // by address
};

}  // namespace plugrad::vulkan
