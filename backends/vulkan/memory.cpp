#include <backends/vulkan/memory.hpp>

#include <backends/vulkan/device.hpp>

#include <algorithm>

namespace plugrad::vulkan {
namespace {
constexpr uint64_t kChunk = 64 << 20, kOwn = 16 << 20, kStep = 256;  // bytes; buffers from kOwn on share no chunk

uint64_t rounded(uint64_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }
}  // namespace

Heap::Heap(Device& device) : device_(device) {
  auto all = typed<VkPhysicalDeviceMemoryProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
  Driver::get().functions().vkGetPhysicalDeviceMemoryProperties2(device.candidate().handle, &all);
  types_ = all.memoryProperties;
  for (uint32_t i = 0; i < types_.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = types_.memoryHeaps[i];
    if (!(heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) || heap.size <= installed_) continue;
    heap_ = i;
    installed_ = heap.size;
  }
}

uint32_t Heap::type_of(uint32_t allowed, bool on_host) const {
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags cached = coherent | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  for (const VkMemoryPropertyFlags wanted : {on_host ? cached : local, on_host ? coherent : 0})
    for (uint32_t i = 0; i < types_.memoryTypeCount; ++i)
      if ((allowed >> i & 1) && (types_.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  throw BackendError(PLUGRAD_INTERNAL, "the device has no memory of the kind that a buffer needs");
}

Memory Heap::make(uint64_t bytes, bool on_host) {
  const DeviceFunctions& f = device_.functions();
  Memory made;
  made.bytes = bytes;
  auto info = typed<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  device_.check(f.vkCreateBuffer(device_.handle(), &info, nullptr, &made.buffer), "vkCreateBuffer");
  try {
    VkMemoryRequirements needs;
    f.vkGetBufferMemoryRequirements(device_.handle(), made.buffer, &needs);
    auto flags = typed<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    const VkMemoryAllocateInfo wanted{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags, needs.size,
                                      type_of(needs.memoryTypeBits, on_host)};
    device_.check(f.vkAllocateMemory(device_.handle(), &wanted, nullptr, &made.memory), "vkAllocateMemory");
    device_.check(f.vkBindBufferMemory(device_.handle(), made.buffer, made.memory, 0), "vkBindBufferMemory");
    void* mapped = nullptr;
    if (on_host) device_.check(f.vkMapMemory(device_.handle(), made.memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
    made.mapped = static_cast<char*>(mapped);
  } catch (...) {
    release(made);
    throw;
  }
  auto where = typed<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  where.buffer = made.buffer;
  made.address = f.vkGetBufferDeviceAddress(device_.handle(), &where);
  return made;
}

void Heap::release(const Memory& memory) noexcept {
  if (device_.lost()) return;
  device_.functions().vkDestroyBuffer(device_.handle(), memory.buffer, nullptr);
  device_.functions().vkFreeMemory(device_.handle(), memory.memory, nullptr);
}

// Returns the address of a part of the chunk, or 0 if no hole is large enough.
uint64_t Heap::cut(Chunk& chunk, uint64_t bytes) {
  const auto hole = std::find_if(chunk.holes.begin(), chunk.holes.end(), [&](const auto& h) { return h.second >= bytes; });
  if (hole == chunk.holes.end()) return 0;
  const auto [offset, size] = *hole;
  chunk.holes.erase(hole);
  if (size > bytes) chunk.holes[offset + bytes] = size - bytes;
  chunk.used[offset] = bytes;
  used_ += bytes;
  return chunk.address + offset;
}

uint64_t Heap::allocate(uint64_t bytes) {
  const uint64_t largest = device_.candidate().largest_buffer;
  if (bytes > largest)
    throw BackendError(PLUGRAD_OUT_OF_MEMORY, "the largest buffer of this device has " + std::to_string(largest) + " bytes");
  const uint64_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  if (size < kOwn)
    for (auto& [address, chunk] : chunks_)
      if (const uint64_t found = cut(chunk, size)) return found;
  Chunk chunk{};
  static_cast<Memory&>(chunk) = make(size < kOwn ? std::min(kChunk, largest) : bytes, false);
  chunk.holes[0] = std::max(chunk.bytes, size);  // the last step of a large buffer may exceed the requested bytes
  return cut(chunks_[chunk.address] = std::move(chunk), size);
}

void Heap::fill_hole(Chunk& chunk, uint64_t offset, uint64_t bytes) {
  auto next = chunk.holes.lower_bound(offset);
  if (next != chunk.holes.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = chunk.holes.erase(next);
  }
  const bool joins = next != chunk.holes.begin() && std::prev(next)->first + std::prev(next)->second == offset;
  if (joins) std::prev(next)->second += bytes;
  else chunk.holes[offset] = bytes;
}

// Keeps one empty chunk: a program that repeatedly allocates and frees one buffer does not ask the driver each time.
void Heap::free(uint64_t address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = std::prev(chunks_.upper_bound(address));
  Chunk& chunk = place->second;
  const auto found = chunk.used.find(address - chunk.address);
  if (found == chunk.used.end()) return;
  const auto [offset, bytes] = *found;
  used_ -= bytes;
  chunk.used.erase(found);
  fill_hole(chunk, offset, bytes);
  const bool shared = chunk.bytes == kChunk;
  const bool other = std::any_of(chunks_.begin(), chunks_.end(),
                                 [&](const auto& each) { return each.second.used.empty() && &each.second != &chunk; });
  if (!chunk.used.empty() || (shared && !other)) return;
  release(chunk);
  chunks_.erase(place);
}

Place Heap::find(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const Chunk& chunk = std::prev(chunks_.upper_bound(address))->second;
  return {chunk.buffer, address - chunk.address};
}

void* Heap::pin(uint64_t bytes) {
  const Memory made = make(bytes, true);
  const std::lock_guard lock(mutex_);
  pinned_[made.mapped] = made;
  return made.mapped;
}

void Heap::unpin(const void* address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = pinned_.find(static_cast<const char*>(address));
  if (found == pinned_.end()) return;
  release(found->second);
  pinned_.erase(found);
}

Place Heap::find_pinned(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto* at = static_cast<const char*>(address);
  const auto& [base, memory] = *std::prev(pinned_.upper_bound(at));
  return {memory.buffer, static_cast<uint64_t>(at - base)};
}

// Returns the free memory by the driver's budget, where it has one; other programs may have taken memory. The budget of
// software is the host's, and its pages count only once they are written.
uint64_t Heap::available() {
  const std::lock_guard lock(mutex_);
  const Candidate& candidate = device_.candidate();
  if (!candidate.abilities.budget || candidate.is_software()) return installed_ > used_ ? installed_ - used_ : 0;
  using Budget = VkPhysicalDeviceMemoryBudgetPropertiesEXT;
  auto budget = typed<Budget>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  auto all = typed<VkPhysicalDeviceMemoryProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, &budget);
  Driver::get().functions().vkGetPhysicalDeviceMemoryProperties2(candidate.handle, &all);
  const uint64_t whole = budget.heapBudget[heap_], taken = budget.heapUsage[heap_];
  return std::min(installed_, whole > taken ? whole - taken : 0);
}

}  // namespace plugrad::vulkan
