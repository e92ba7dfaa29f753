// Turns Ctrl-C into a flag, so that the program can save its work.
#pragma once
#include <csignal>

namespace plugrad::tool {

// During its lifetime the first SIGINT or SIGTERM only sets a flag. The second one ends the process as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  // Returns the signal that arrived, or 0.
  static int pending();

 private:
  struct sigaction old_interrupt_ {
  }, old_terminate_{};
};

}  // namespace plugrad::tool
