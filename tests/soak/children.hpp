// Work in child processes, for tests that leave their process unusable. The parent must not use plugrad before, because
// devices do not survive a fork.
#pragma once
#include <sys/types.h>
#include <functional>
#include <string>

namespace plugrad::test {

struct Ending {
  std::string text;  // "exit status 0", "signal 9", "no end within 60 s"
};

// Starts a process that runs `work` and calls exit with its result.
pid_t start_child(const std::function<int()>& work);
// Waits for a process; kills it after a minute.
Ending end_of(pid_t child);
inline Ending run_child(const std::function<int()>& work) { return end_of(start_child(work)); }

}  // namespace plugrad::test
