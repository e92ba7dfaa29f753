#include <backends/cpu/pool.hpp>

#include <backends/cpu/machine.hpp>
#include <plugrad/sdk/threads.hpp>

#include <pthread.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace plugrad::cpu {
namespace {

constexpr auto kSpin = std::chrono::microseconds(200);  // longer than the gap between two ops of a step in Python

// Waits until word differs from old. It spins first, since most waits are shorter than waking a thread.
void await_change(std::atomic<uint32_t>& word, uint32_t old) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  word.wait(old, std::memory_order_acquire);
}

class Pool {
 public:
  // Returns whether the pool was free; the caller then owns it until release.
  bool acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  void run(int threads, uint32_t tasks, Task task, void* context) {
    start_workers(threads - 1);
    task_ = task;
    context_ = context;
    mode_ = float_mode();
    done_.store(0, std::memory_order_relaxed);
    limit_.store(threads - 1, std::memory_order_relaxed);
    ticket_.store(static_cast<uint64_t>(tasks) << 32, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    work();
    for (uint32_t done; (done = done_.load(std::memory_order_acquire)) != tasks;) await_change(done_, done);
  }

 private:
  // Claims tasks until none is left. A ticket is {number of tasks, next task}. A thread with a valid number works for its
  // job. The job cannot end or change its fields before this task is done, so late threads need no further check.
  void work() {
    for (;;) {
      const uint64_t drawn = ticket_.fetch_add(1, std::memory_order_acq_rel);
      if (static_cast<uint32_t>(drawn) >= static_cast<uint32_t>(drawn >> 32)) return;
      if (const uint32_t mode = mode_; float_mode() != mode) set_float_mode(mode);
      task_(context_, static_cast<uint32_t>(drawn));
      done_.fetch_add(1, std::memory_order_release);
      done_.notify_one();
    }
  }

  void serve(int index) {
    for (uint32_t seen = 0;;) {
      await_change(epoch_, seen);
      seen = epoch_.load(std::memory_order_acquire);
      if (index < limit_.load(std::memory_order_relaxed)) work();
    }
  }

  // Too few threads are not an error.
  void start_workers(int wanted) {
    if (workers_ >= wanted) return;
    try {
      for (; workers_ < wanted; ++workers_) start_thread([this, index = workers_] { serve(index); });
    } catch (const std::exception&) {
    }
  }

  std::atomic<bool> busy_{false};
  int workers_ = 0;  // only the owner of the pool writes this and the next three
  Task task_ = nullptr;
  void* context_ = nullptr;
  uint32_t mode_ = 0;
  std::atomic<int> limit_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> done_{0};
};

// Never destroyed: its threads run until the process ends. A forked child has none of them, and abandons the object.
std::atomic<Pool*> process_pool{nullptr};

Pool& pool() {
  if (Pool* there = process_pool.load(std::memory_order_acquire)) return *there;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { process_pool.store(nullptr); });
  (void)registered;
  Pool* made = new Pool;
  Pool* there = nullptr;
  if (process_pool.compare_exchange_strong(there, made)) return *made;
  delete made;
  return *there;
}

}  // namespace

void run_tasks(int threads, uint32_t tasks, Task task, void* context) {
  Pool& p = pool();
  if (!p.acquire()) {
    for (uint32_t i = 0; i < tasks; ++i) task(context, i);
    return;
  }
  p.run(static_cast<int>(std::min<uint32_t>(threads, tasks)), tasks, task, context);
  p.release();
}

}  // namespace plugrad::cpu
