// Free objects: each thread caches some in stacks of a fixed capacity, which move between threads whole. Per-thread lists
// without exchange would grow without bound if one thread allocates and another frees. After Bonwick and Adams, "Magazines
// and Vmem", USENIX 2001.
#pragma once
#include <core/runtime/fork.hpp>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace plugrad {

// Stacks that no thread holds.
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
  void give_empty(T** stack) {
    const std::lock_guard lock(depot_mutex());
    empty_.push_back(stack);
  }
  T** take_empty(uint32_t capacity) {
    const std::lock_guard lock(depot_mutex());
    T** stack = take(empty_);
    return stack ? stack : new T*[capacity];
  }
  // Collects single objects until they fill a stack.
  void give_one(T* object, uint32_t capacity) {
    const std::lock_guard lock(depot_mutex());
    loose_.push_back(object);
    if (loose_.size() < capacity) return;
    T** const stack = new T*[capacity];
    for (size_t i = 0; i < loose_.size(); ++i) stack[i] = loose_[i];
    full_.push_back(stack);
    loose_.clear();
  }
  uint64_t count(uint32_t capacity) const {
    const std::lock_guard lock(depot_mutex());
    return full_.size() * capacity + loose_.size();
  }

 private:
  static T** take(std::vector<T**>& stacks) {
    if (stacks.empty()) return nullptr;
    T** stack = stacks.back();
    stacks.pop_back();
    return stack;
  }
  std::vector<T**> full_, empty_;
  std::vector<T*> loose_;
};

// A thread's own stack, and a spare one that is full or empty, so that alternating push and pop at a boundary takes no lock.
template <class T> class Magazine {
 public:
  bool empty() const { return top_ == begin_; }
  bool full() const { return top_ == end_; }  // also if it has no stack yet
  T* pop() { return *--top_; }            // requires !empty()
  void push(T* free) { *top_++ = free; }  // requires !full()

  // Requires empty(). Fetches a full stack; returns false if neither this thread nor the depot has one.
  bool refill(uint32_t capacity, Depot<T>& depot) {
    T** stack = spare_full_ ? std::exchange(spare_, nullptr) : depot.take_full();
    if (!stack) return false;
    if (spare_) depot.give_empty(spare_);
    spare_ = std::exchange(begin_, stack);
    spare_full_ = false;
    top_ = end_ = begin_ + capacity;
    return true;
  }
  // Requires a magazine without a stack. Makes `object` the next to pop, after which the magazine is empty and full again.
  void lend(T*& object) {
    begin_ = end_ = &object;
    top_ = begin_ + 1;
  }
  // Requires full(). Makes room for `capacity` objects.
  void make_room(uint32_t capacity, Depot<T>& depot) {
    if (spare_full_) depot.give_full(std::exchange(spare_, nullptr));
    T** stack = spare_ ? spare_ : depot.take_empty(capacity);
    spare_ = std::exchange(begin_, stack);
    spare_full_ = spare_ != nullptr;
    top_ = begin_;
    end_ = begin_ + capacity;
  }
  // The number of objects in it. Called by the owning thread only.
  uint64_t count(uint32_t capacity) const { return static_cast<uint64_t>(top_ - begin_) + (spare_full_ ? capacity : 0); }
  // Called when the thread ends.
  void flush(uint32_t capacity, Depot<T>& depot) {
    if (begin_ && full()) depot.give_full(std::exchange(begin_, nullptr));
    else
      while (!empty()) depot.give_one(pop(), capacity);
    if (spare_full_) depot.give_full(std::exchange(spare_, nullptr));
    delete[] begin_;
    delete[] spare_;
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
