// Memory of a device: a piece of a buffer, and a record of its uses by streams.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/runtime/ref.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace plugrad {

class DeviceState;
struct StandIn;
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
  uint64_t bytes = 0;                // size of the block
  uint64_t size = 0;                 // requested bytes
  uint32_t list = 0;                 // the magazine of a small block
  uint32_t drop = kStorageLists;     // `list`, or the always full magazine: see small_blocks.hpp
  bool large = false;                // a Block of the allocator
  bool imported = false;             // another library owns the memory: see import.hpp
  std::atomic<bool> tracked{false};  // its origin is recorded: see tracking.hpp
  std::atomic<uint32_t> shared{0};   // other libraries that have the memory now, and may write to it
  std::atomic<uint32_t> exports{0};  // and all that ever had it
  std::atomic<uint8_t> captured{0};  // the number of recorders following it: see trace.hpp

  // For devices with streams. The home of a storage is the compute stream. Of the home's uses only writes are recorded; its
  // reads are tracked through the home's latest number. Uses by other streams are recorded exactly.
  std::atomic<uint32_t> owner{0};   // id of the home; | kForeign if `foreign` is set
  uint32_t writer = 0;              // the stream of the last write; `written` is its number there, 0 if never written
  std::atomic<uint32_t> traces{0};  // traces that use it as memory from outside: see trace.hpp
  std::atomic<uint64_t> written{0};
  uint64_t freed = 0;                   // if free: the home's number when it was freed
  std::unique_ptr<uint64_t[]> foreign;  // guarded by the ledger: the last use by each other stream

  StandIn* stand_in = nullptr;  // owned: the memory that this storage stands for; see stand_ins.hpp
  uint64_t made_under = 0;      // the id of the innermost transform whose function wrote it first
};

void destroy(Storage* storage) noexcept;  // inline in small_blocks.hpp

}  // namespace plugrad
