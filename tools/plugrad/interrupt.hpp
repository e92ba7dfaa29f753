// Turns Ctrl-C into a flag, so that the program can save its work.
#pragma once
#include <array>
#include <csignal>

namespace plugrad::tool {

// During its lifetime the first SIGINT, SIGTERM, SIGHUP or SIGPIPE only sets a flag; an ignored signal, as under nohup,
// stays ignored. A second SIGINT, SIGTERM or SIGHUP ends the process as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  // Returns the number of the arrived signal, or 0.
  static int pending();

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace plugrad::tool
