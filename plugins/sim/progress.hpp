// A rising number for threads to wait for. If no thread waits, raising it costs a store and a load.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace plugrad::sim {

class Progress {
 public:
  uint64_t value() const { return value_.load(std::memory_order_acquire); }

  // Calls must not be concurrent.
  void advance(uint64_t to) {
    value_.store(to);
    if (to >= wake_at_.load()) wake();
  }

  void wait_for(uint64_t goal) {
    constexpr int kPatience = 24;  // yields; together they cost less than sleeping and waking up
    for (int i = 0; i < kPatience; ++i) {
      if (value() >= goal) return;
      std::this_thread::yield();
    }
    std::unique_lock lock(mutex_);
    for (;;) {
      // Either this thread sees the new value, or the storing thread sees wake_at_: both accesses are seq_cst.
      wake_at_.store(std::min(wake_at_.load(), goal));
      if (value_.load() >= goal) return;
      moved_.wait(lock);
    }
  }

 private:
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      wake_at_.store(~0ull);  // threads with a higher goal store it again
    }
    moved_.notify_all();
  }

  std::atomic<uint64_t> value_{0}, wake_at_{~0ull};
  std::mutex mutex_;
  std::condition_variable moved_;
};

}  // namespace plugrad::sim
