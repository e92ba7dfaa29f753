// Copies of a stream: on the device, and through staging memory between the device and plain host memory.
#include <backends/vulkan/stream.hpp>

#include <cstring>

namespace plugrad::vulkan {

void VulkanStream::copy(uint64_t number, Place to, Place from, uint64_t bytes) {
  Lock lock(mutex_);
  open_op(lock);
  const VkBufferCopy region{from.offset, to.offset, bytes};
  f_.vkCmdCopyBuffer(open_->commands, from.buffer, to.buffer, 1, &region);
  close_op(number);
}

// Returns the offset of a place in the staging memory. Stores the size of the place in `piece`: at most `bytes`.
uint64_t VulkanStream::take_slot(Lock& lock, uint64_t bytes, uint64_t& piece) {
  constexpr uint64_t kStep = 16;
  const bool fits = slots_[slot_].used + bytes <= kSlotBytes;
  if (!fits && slots_[slot_].used) {
    if (slots_[slot_].is_in_open) flush();
    slot_ = (slot_ + 1) % kSlots;
    if (slots_[slot_].is_in_open) flush();
    wait_value(lock, slots_[slot_].value);
    slots_[slot_].used = 0;
  }
  Slot& slot = slots_[slot_];
  piece = std::min(bytes, kSlotBytes - slot.used);
  const uint64_t at = static_cast<uint64_t>(slot_) * kSlotBytes + slot.used;
  slot.used += (piece + kStep - 1) / kStep * kStep;
  return at;
}

void VulkanStream::upload(uint64_t number, Place to, const char* from, uint64_t bytes) {
  Lock lock(mutex_);
  for (uint64_t done = 0, piece = 0; done < bytes; done += piece) {
    const uint64_t at = take_slot(lock, bytes - done, piece);
    std::memcpy(staging_.mapped + at, from + done, piece);
    open_op(lock);
    slots_[slot_].is_in_open = true;
    const VkBufferCopy region{at, to.offset + done, piece};
    f_.vkCmdCopyBuffer(open_->commands, staging_.buffer, to.buffer, 1, &region);
  }
  close_op(number);
}

// The number counts only when all bytes have arrived: a refused copy is submitted again with the same number.
void VulkanStream::download(uint64_t number, char* to, Place from, uint64_t bytes) {
  Lock lock(mutex_);
  for (uint64_t done = 0, piece = 0; done < bytes; done += piece) {
    const uint64_t at = take_slot(lock, bytes - done, piece);
    open_op(lock);
    slots_[slot_].is_in_open = true;
    const VkBufferCopy region{from.offset + done, at, piece};
    f_.vkCmdCopyBuffer(open_->commands, from.buffer, staging_.buffer, 1, &region);
    flush();
    wait_value(lock, signaled_);
    demand_sound();
    std::memcpy(to + done, staging_.mapped + at, piece);
  }
  submitted_ = number;
}

}  // namespace plugrad::vulkan
