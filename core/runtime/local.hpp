// What a thread keeps for itself: free objects, mode, the last report. Reached by one pointer.
#pragma once
#include <core/runtime/magazine.hpp>
#include <core/runtime/storage.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/sdk/abi.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

namespace plugrad {

struct Node;
constexpr uint32_t kMagazine = 256;  // objects that change hands at once, where they are small

// Memory for objects of kSize bytes.
template <size_t kSize> class Pool {
 public:
  // Makes sure that there is memory for one object. Throws Error (out_of_memory).
  void reserve() {
    if (magazine_.empty()) [[unlikely]] grow();
  }
  void* get_reserved() { return magazine_.pop(); }
  void* get() {
    reserve();
    return get_reserved();
  }
  void put(void* p) {
    if (magazine_.full()) [[unlikely]] make_room();
    magazine_.push(p);
  }
  void flush() { magazine_.flush(kMagazine, depot()); }

 private:
  static Depot<void>& depot() {
    static Depot<void>& d = *new Depot<void>;
    return d;
  }
  [[gnu::noinline, gnu::cold]] void make_room() { magazine_.make_room(kMagazine, depot()); }
  [[gnu::noinline, gnu::cold]] void grow() {
    if (magazine_.refill(kMagazine, depot())) return;
    char* chunk = static_cast<char*>(std::aligned_alloc(64, kSize * kMagazine));
    if (!chunk) throw Error(Code::out_of_memory, "[tensor] out of host memory");
    if (magazine_.full()) magazine_.make_room(kMagazine, depot());
    for (uint32_t i = kMagazine; i-- > 0;) magazine_.push(chunk + i * kSize);
  }
  Magazine<void> magazine_;
};

// Small blocks of device memory: 64 bytes << class, up to 4 KB.
constexpr uint64_t kSmallest = 64;
constexpr uint64_t kLargestSmall = kSmallest << (kSizeClasses - 1);
constexpr uint32_t small_capacity(uint32_t size_class) {
  return size_class < 3 ? kMagazine : uint32_t((64 << 10) / (kSmallest << size_class));
}

enum Mode : uint32_t {
  kRecording = 1,  // ops on tensors that want gradients are recorded
  kRetaining = 2,  // and their nodes keep operands, outputs and gradients: what Value shows
};

constexpr size_t kHeaderBytes = 192;
constexpr size_t kNodeBytes = 192;

struct Local {
  Pool<kHeaderBytes> headers;
  Pool<kNodeBytes> nodes;
  std::array<Magazine<Storage>, kStorageLists + 1> storages;  // the last one stays as it is: see Storage::drop
  Node* dying = nullptr;
  bool releasing = false;
  uint32_t mode = kRecording;
  std::array<std::atomic<uint64_t>, kMaxDevices> kernels{};  // calls by this thread; written by it alone
  std::string report;
  bool short_of_memory = false;  // a kernel declined the op at hand for that reason

  Local();
  ~Local();
  void count_kernel(uint32_t ordinal) {
    std::atomic<uint64_t>& n = kernels[ordinal];
    n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

inline constinit thread_local Local* tls = nullptr;
Local& make_local();
inline Local& local() { return tls ? *tls : make_local(); }

// Kernel calls of all threads on a device.
uint64_t kernels_called(uint32_t ordinal);
Depot<Storage>& storage_depot(uint32_t list);

// What a plugin reported on this thread; empties it.
std::string take_report();
// Throws Error with that status: "[where] why".
[[noreturn]] void throw_status(plugrad_status status, const std::string& where, const std::string& why);

}  // namespace plugrad
