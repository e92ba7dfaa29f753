// Free objects: each thread caches some in stacks of a fixed capacity, and threads exchange whole stacks. Per-thread lists
// without exchange would grow without bound if a thread allocates and another frees. After Bonwick and Adams, "Magazines
// and Vmem", USENIX 2001.
#pragma once
#include <core/runtime/fork.hpp>
#include <core/runtime/memory/storage.hpp>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace plugrad {

// Links free objects without memory of their own.
inline void set_next_free(void* object, void* next) { std::memcpy(object, &next, sizeof next); }
inline void set_next_free(Storage* storage, Storage* next) { storage->size = reinterpret_cast<uintptr_t>(next); }
inline void* next_free(void* object) {
  void* next = nullptr;
  std::memcpy(&next, object, sizeof next);
  return next;
}
inline Storage* next_free(const Storage* storage) { return reinterpret_cast<Storage*>(storage->size); }

// Stacks outside of threads, and loose objects. Taking objects back allocates nothing and cannot fail; only new stacks are
// allocated.
template <class T> class Depot {
 public:
  void give_full(T** stack) {
    const std::lock_guard lock(depot_mutex());
    full_.push_back(stack);
  }
  T** take_full() {  // or null
    const std::lock_guard lock(depot_mutex());
    return take(full_);
  }
  // Returns a full stack of loose objects; null if they are too few. Throws std::bad_alloc.
  T** take_loose(uint32_t capacity) {
    const std::lock_guard lock(depot_mutex());
    if (loose_count_ < capacity) return nullptr;
    T** const stack = empty_stack(capacity);
    for (uint32_t i = 0; i < capacity; ++i) stack[i] = std::exchange(loose_, next_free(loose_));
    loose_count_ -= capacity;
    return stack;
  }
  void give_empty(T** stack) {
    const std::lock_guard lock(depot_mutex());
    empty_.push_back(stack);
  }
  // Returns null if memory is short.
  T** take_empty(uint32_t capacity) noexcept {
    const std::lock_guard lock(depot_mutex());
    try {
      return empty_stack(capacity);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  void give_one(T* object) {
    const std::lock_guard lock(depot_mutex());
    set_next_free(object, std::exchange(loose_, object));
    ++loose_count_;
  }
  uint64_t count(uint32_t capacity) const {
    const std::lock_guard lock(depot_mutex());
    return full_.size() * capacity + loose_count_;
  }

 private:
  T** empty_stack(uint32_t capacity) {
    if (T** const stack = take(empty_)) return stack;
    // Room for all stacks in both lists.
    for (std::vector<T**>* each : {&full_, &empty_})
      if (each->capacity() <= stacks_) each->reserve(2 * stacks_ + 4);
    T** const made = new T*[capacity];
    ++stacks_;
    return made;
  }
  static T** take(std::vector<T**>& stacks) {
    if (stacks.empty()) return nullptr;
    T** stack = stacks.back();
    stacks.pop_back();
    return stack;
  }
  std::vector<T**> full_, empty_;
  size_t stacks_ = 0;  // here and in threads
  T* loose_ = nullptr;
  uint64_t loose_count_ = 0;
};

// A thread's own stack, and a full or empty spare, so that alternating push and pop at a boundary takes no lock.
template <class T> class Magazine {
 public:
  bool empty() const { return top_ == begin_; }
  bool full() const { return top_ == end_; }  // also if it has no stack yet
  T* pop() { return *--top_; }                // requires !empty()
  void push(T* free) { *top_++ = free; }      // requires !full()

  // Requires empty(). Fetches a full stack; returns false if neither this thread nor the depot has any. Throws
  // std::bad_alloc.
  bool refill(uint32_t capacity, Depot<T>& depot) {
    T** stack = spare_full_ ? std::exchange(spare_, nullptr) : depot.take_full();
    if (!stack) stack = depot.take_loose(capacity);
    if (!stack) return false;
    if (spare_) depot.give_empty(spare_);
    spare_ = std::exchange(begin_, stack);
    spare_full_ = false;
    top_ = end_ = begin_ + capacity;
    return true;
  }
  // Requires a magazine without a stack. The next pop returns `object`; then the magazine is empty and full again.
  void lend(T*& object) {
    begin_ = end_ = &object;
    top_ = begin_ + 1;
  }
  // Requires full(). Makes room for `capacity` objects. Returns false if memory is short.
  bool make_room(uint32_t capacity, Depot<T>& depot) noexcept {
    if (std::exchange(spare_full_, false)) depot.give_full(std::exchange(spare_, nullptr));
    T** stack = spare_ ? spare_ : depot.take_empty(capacity);
    if (!stack) return false;
    spare_ = std::exchange(begin_, stack);
    spare_full_ = spare_ != nullptr;
    top_ = begin_;
    end_ = begin_ + capacity;
    return true;
  }
  // Pushes an object, or gives it to the depot if the magazine is full and memory is short.
  void put(T* free, uint32_t capacity, Depot<T>& depot) noexcept {
    if (full() && !make_room(capacity, depot)) return depot.give_one(free);
    push(free);
  }
  // The number of objects in it. Called by the owning thread only.
  uint64_t count(uint32_t capacity) const { return static_cast<uint64_t>(top_ - begin_) + (spare_full_ ? capacity : 0); }
  // Called when the thread ends.
  void flush(Depot<T>& depot) {
    if (begin_ && full()) depot.give_full(std::exchange(begin_, nullptr));
    else
      while (!empty()) depot.give_one(pop());
    if (spare_full_) depot.give_full(std::exchange(spare_, nullptr));
    for (T** const stack : {begin_, spare_})
      if (stack) depot.give_empty(stack);
    *this = {};
  }
  // Drops the pointers, not the objects.
  void forget() { *this = {}; }

 private:
  T** top_ = nullptr;  // beyond the last free object
  T** begin_ = nullptr;
  T** end_ = nullptr;
  T** spare_ = nullptr;
  bool spare_full_ = false;
};

}  // namespace plugrad
