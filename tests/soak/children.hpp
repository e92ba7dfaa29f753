// Work in child processes, for tests after which a process is of no use. The parent must not have used plugrad before,
// because devices do not survive a fork.
#pragma once
#include <sys/types.h>
#include <functional>
#include <string>

namespace plugrad::test {

struct Ending {
  std::string text;  // "exit status 0", "signal 9", "no end within 60 s"
};

// Starts a process that runs `work` and ends with what it returns, as by exit.
pid_t start_child(const std::function<int()>& work);
// Waits for a process; kills it after a minute.
Ending end_of(pid_t child);
inline Ending run_child(const std::function<int()>& work) { return end_of(start_child(work)); }

}  // namespace plugrad::test
