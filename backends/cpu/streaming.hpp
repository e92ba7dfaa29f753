// Operands beyond the caches. Stores to larger outputs bypass the caches: a processor then does not read a line before it
// writes it. Loops fetch lines ahead from operands beyond the near caches, and lines for writing, too.
#pragma once
#include <backends/cpu/operand.hpp>
#include <backends/cpu/pool.hpp>

namespace plugrad::cpu {

inline constexpr int64_t kStreamedBytes = int64_t{16} << 20;
inline constexpr int64_t kFarBytes = int64_t{1} << 20;       // beyond the near caches
inline constexpr int kReadAhead = 2048, kWriteAhead = 1024;  // bytes

// Returns whether a pass over `bytes` in all begins at its end. Passes beyond the near caches go forwards and backwards in
// turn, so each pass begins with data in the near caches from the pass before it. The tasks of a pass must not depend on
// each other.
bool begins_at_end(int64_t bytes);

// Like parallel, for a pass over `bytes` in all, in the order of its tasks.
template <class F> void parallel_pass(int threads, int64_t tasks, int64_t bytes, F&& f) {
  if (!begins_at_end(bytes)) return parallel(threads, tasks, f);
  parallel(threads, tasks, [&](int64_t task) { f(tasks - 1 - task); });
}

// Whether stores to this output should bypass the caches.
inline bool is_streamed(const plugrad_view& out) {
  return out.count * static_cast<int64_t>(element_size(out.dtype)) >= kStreamedBytes;
}

}  // namespace plugrad::cpu
