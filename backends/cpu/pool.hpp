// The threads of this backend: one pool for the process, started at the first use and created again in a forked child.
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace plugrad::cpu {

using Task = void (*)(void* context, uint32_t index);

// Calls task(context, i) once for each i below tasks, on at most `threads` threads, the caller's among them, and returns
// when all are done. If another thread is using the pool, the caller runs all tasks. Tasks neither throw nor nest.
// [any]
void run_tasks(int threads, uint32_t tasks, Task task, void* context);

inline constexpr int64_t kMaxTasks = 1 << 16;

// Calls f(i) once for each i below tasks. `tasks` must not depend on `threads`, so results do not depend on `threads`.
template <class F> void parallel(int threads, int64_t tasks, F&& f) {
  if (threads <= 1 || tasks <= 1) {
    for (int64_t i = 0; i < tasks; ++i) f(i);
    return;
  }
  const int64_t each = (tasks + kMaxTasks - 1) / kMaxTasks;
  auto group = [&](uint32_t index) {
    for (int64_t i = index * each; i < (index + 1) * each && i < tasks; ++i) f(i);
  };
  using Group = decltype(group);
  run_tasks(
      threads, static_cast<uint32_t>((tasks + each - 1) / each),
      [](void* context, uint32_t index) { (*static_cast<Group*>(context))(index); }, &group);
}

// Calls f(slot, i) once for each i below tasks; slots are below `slots`. Calls with the same slot do not overlap, so each
// slot may have separate memory.
template <class F> void parallel_in_slots(int threads, int64_t slots, int64_t tasks, F&& f) {
  std::atomic<int64_t> next{0};
  parallel(threads, slots, [&](int64_t slot) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) f(slot, i);
  });
}

}  // namespace plugrad::cpu
