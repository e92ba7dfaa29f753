// Ctrl-C while something is worth saving.
#pragma once
#include <csignal>

namespace plugrad::tool {

// While it lives, the first SIGINT or SIGTERM only sets a mark; the second one ends the process as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  // The signal that came, or 0.
  static int pending();

 private:
  struct sigaction old_interrupt_ {
  }, old_terminate_{};
};

}  // namespace plugrad::tool
