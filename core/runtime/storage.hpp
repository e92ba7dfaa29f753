// Memory of a device: a piece of a buffer, with what the core knows of its uses in time.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/runtime/ref.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace plugrad {

class DeviceState;
constexpr uint32_t kMaxDevices = 64, kMaxStreams = 32;
// Small blocks: 64 bytes << class, up to 4 KB.
constexpr uint32_t kSizeClasses = 7;
constexpr uint32_t kStorageLists = kMaxDevices * kSizeClasses;
constexpr uint64_t kSmallest = 64;
constexpr uint64_t kLargestSmall = kSmallest << (kSizeClasses - 1);
constexpr uint32_t kForeign = 1u << 31;

struct Storage : Counted {
  uint32_t version = 0;  // raised by each write in place; detached handles and views share it
  plugrad_buffer* buffer = nullptr;
  uint64_t offset = 0;
  DeviceState* device = nullptr;
  uint64_t bytes = 0;       // of the block
  uint64_t size = 0;        // what was asked for
  uint32_t list = 0;        // the magazine of a small block
  uint32_t drop = kStorageLists;  // the same, or one that is always full: see small_blocks.hpp
  bool large = false;       // it is the allocator's own
  bool imported = false;    // it is somebody else's: see import.hpp

  // On devices with streams. A storage has one home: the compute stream. What the home does is recorded only where it
  // writes; its reads are covered by the home's latest number. Uses by other streams are recorded exactly.
  std::atomic<uint32_t> owner{0};    // id of home; | kForeign where `foreign` is set
  uint32_t writer = 0;               // the stream of the last write, and its number there; 0: never written
  std::atomic<uint64_t> written{0};
  uint64_t freed = 0;                // while free: home's number when it was freed
  std::unique_ptr<uint64_t[]> foreign;  // under the ledger: the last use by each other stream
};

void destroy(Storage* storage) noexcept;  // inline in small_blocks.hpp

}  // namespace plugrad
