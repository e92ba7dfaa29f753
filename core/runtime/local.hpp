// What a thread keeps for itself: free objects, mode, the last report. Reached by one pointer.
#pragma once
#include <core/runtime/fork.hpp>
#include <core/runtime/storage.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/sdk/abi.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace plugrad {

struct Node;
constexpr uint32_t kMaxDevices = 64;
constexpr uint32_t kMagazine = 256;  // objects that change hands at once

// Full magazines that no thread holds. Lists that only return to the thread that drops them would grow without end when one
// thread makes and another drops.
template <class Link> class Depot {
 public:
  void give(Link* magazine) {
    const std::lock_guard lock(mutex());
    full_.push_back(magazine);
  }
  Link* take() {
    const std::lock_guard lock(mutex());
    if (full_.empty()) return nullptr;
    Link* magazine = full_.back();
    full_.pop_back();
    return magazine;
  }
  // Collects single objects until they fill a magazine.
  void give_one(Link* object, uint32_t capacity) {
    const std::lock_guard lock(mutex());
    object->next = std::exchange(loose_, object);
    if (++loose_count_ < capacity) return;
    full_.push_back(std::exchange(loose_, nullptr));
    loose_count_ = 0;
  }
  static std::mutex& mutex();

 private:
  std::vector<Link*> full_;
  Link* loose_ = nullptr;
  uint32_t loose_count_ = 0;
};
template <class Link> std::mutex& Depot<Link>::mutex() { return depot_mutex(); }

// Free objects of one kind, linked by `next`: a thread holds at most two magazines of `capacity`.
template <class Link> struct Magazine {
  Link* head = nullptr;
  Link* spare = nullptr;  // full, or null
  uint32_t count = 0;     // of head

  Link* pop() {
    --count;
    return std::exchange(head, head->next);
  }
  // retire() is called first where it is full.
  void push(Link* free) {
    free->next = std::exchange(head, free);
    ++count;
  }
  void retire(Depot<Link>& depot) {
    if (spare) depot.give(spare);
    spare = std::exchange(head, nullptr);
    count = 0;
  }
  // Whether there is something to pop now, without making anything new.
  bool refill(uint32_t capacity, Depot<Link>& depot) {
    head = std::exchange(spare, nullptr);
    if (!head) head = depot.take();
    count = head ? capacity : 0;
    return head;
  }
  // For a thread that ends: full magazines go to the depot, the rest one by one into `loose`, a list under the same lock.
  void flush(uint32_t capacity, Depot<Link>& depot) {
    if (spare) depot.give(spare);
    if (count == capacity) depot.give(head);
    else
      while (head) depot.give_one(pop(), capacity);
    *this = {};
  }
};

// Objects of kSize bytes.
template <size_t kSize> class Pool {
 public:
  void* get() {
    if (!magazine_.head) [[unlikely]] grow();
    return magazine_.pop();
  }
  void put(void* p) {
    if (magazine_.count == kMagazine) [[unlikely]] retire();
    magazine_.push(new (p) Link);
  }
  void flush() { magazine_.flush(kMagazine, depot()); }

 private:
  struct Link {
    Link* next;
  };
  static Depot<Link>& depot() {
    static Depot<Link>& d = *new Depot<Link>;
    return d;
  }
  [[gnu::noinline, gnu::cold]] void retire() { magazine_.retire(depot()); }
  [[gnu::noinline, gnu::cold]] void grow() {
    if (magazine_.refill(kMagazine, depot())) return;
    char* chunk = static_cast<char*>(std::aligned_alloc(64, kSize * kMagazine));
    if (!chunk) throw Error(Code::out_of_memory, "[tensor] out of host memory");
    for (uint32_t i = kMagazine; i-- > 0;) magazine_.push(new (chunk + i * kSize) Link);
  }
  Magazine<Link> magazine_;
};

// Small blocks of device memory: 64 bytes << class, up to 4 KB.
constexpr uint32_t kSizeClasses = 7;
constexpr uint64_t kSmallest = 64;
constexpr uint64_t kLargestSmall = kSmallest << (kSizeClasses - 1);
constexpr uint32_t small_capacity(uint32_t size_class) { return size_class < 3 ? kMagazine : uint32_t((64 << 10) / (kSmallest << size_class)); }

enum Mode : uint32_t {
  kRecording = 1,  // ops on tensors that want gradients are recorded
  kRetaining = 2,  // and their nodes keep operands, outputs and gradients: what Value shows
};

constexpr size_t kHeaderBytes = 192;
constexpr size_t kNodeBytes = 192;

struct Local {
  Pool<kHeaderBytes> headers;
  Pool<kNodeBytes> nodes;
  std::array<Magazine<Storage>, kMaxDevices * kSizeClasses> storages;
  Node* dying = nullptr;
  bool releasing = false;
  uint32_t mode = kRecording;
  std::array<std::atomic<uint64_t>, kMaxDevices> kernels{};  // calls by this thread; written by it alone
  std::string report;

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
