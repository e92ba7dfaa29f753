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
constexpr uint32_t kSizeClasses = 7;  // of small blocks
constexpr uint32_t kStorageLists = kMaxDevices * kSizeClasses;
constexpr uint32_t kForeign = 1u << 31;

struct Storage : Counted {
  uint32_t version = 0;  // raised by each write in place; detached handles and views share it
  plugrad_buffer* buffer = nullptr;
  uint64_t offset = 0;
  DeviceState* device = nullptr;
  uint64_t bytes = 0;       // of the block
  uint64_t size = 0;        // what was asked for
  uint32_t list = 0;        // the magazine of a small block
  // The same, or one that is always full: large blocks, imported ones and those of devices with streams may not go there at once.
  uint32_t drop = kStorageLists;
  bool large = false;       // it is the allocator's own
  bool imported = false;    // it is somebody else's: see import.hpp

  // On devices with streams. A storage has one home: the compute stream. What the home does is recorded only where it
  // writes; its reads are stood for by the home's number when somebody asks. Uses by other streams are recorded exactly.
  std::atomic<uint32_t> owner{0};    // id of home; | kForeign where `foreign` is set
  uint32_t writer = 0;               // the stream of the last write, and its number there; 0: never written
  std::atomic<uint64_t> written{0};
  uint64_t freed = 0;                // while free: home's number when it was freed
  std::unique_ptr<uint64_t[]> foreign;  // under the ledger: the last use by each other stream
};

void destroy(Storage* storage) noexcept;  // inline in device_state.hpp

}  // namespace plugrad
