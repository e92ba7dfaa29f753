#include <tests/soak/children.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>

namespace plugrad::test {

pid_t start_child(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child) return child;
  int status = 99;
  try {
    status = work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::exit(status);
}

Ending end_of(pid_t child) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kMost(60);
  const Clock::time_point end = Clock::now() + kMost;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return {"no end within " + std::to_string(kMost.count()) + " s"};
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  if (WIFEXITED(status)) return {"exit status " + std::to_string(WEXITSTATUS(status))};
  return {"signal " + std::to_string(WTERMSIG(status))};
}

}  // namespace plugrad::test
