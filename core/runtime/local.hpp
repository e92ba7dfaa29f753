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

constexpr size_t kObjectBytes = 192;
constexpr uint32_t kFirstMode = 1;

// Objects whose release waits for the end of the one under way, so that nothing recurses on the depth of a graph. Whoever
// releases them chains them.
struct PendingRelease {
  void* first = nullptr;
  bool running = false;
};

struct Local {
  Pool<kObjectBytes> objects;  // of the rooms above: what a tensor points to, nodes of its graph
  std::array<Magazine<Storage>, kStorageLists + 1> storages;  // see small_blocks.hpp; the last one is always full
  PendingRelease pending;
  uint32_t mode = kFirstMode;  // bits of the rooms above, that of kFirstMode set where a thread begins
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

// What a plugin reported on this thread; empties it.
std::string take_report();
// "[where] why", with words for a plugin that gave none.
std::string status_text(plugrad_status status, const std::string& where, const std::string& why);
// Throws Error with that status and text.
[[noreturn]] void throw_status(plugrad_status status, const std::string& where, const std::string& why);

}  // namespace plugrad
