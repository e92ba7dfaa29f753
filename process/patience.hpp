// How long a child process has had, on a machine that may be busy with other programs.
#pragma once
#include <sys/types.h>
#include <chrono>

namespace plugrad {

// A process at one moment.
struct ProcessMoment {
  std::chrono::steady_clock::time_point time;
  std::chrono::nanoseconds processor{0};  // the processor time of all its threads so far
  bool wants_processor = false;           // a thread runs, or would run if a processor were free
};
ProcessMoment moment_of(pid_t process);

// Returns how much of the time between two moments the process has had: a process that wants a processor has had the
// processor time that it got; a process that waits for something else has had all of the time.
std::chrono::nanoseconds time_had(const ProcessMoment& before, const ProcessMoment& now);

// Adds up the time that a process has had. Ask it several times a second.
class Patience {
 public:
  Patience(pid_t process, std::chrono::nanoseconds most) : process_(process), left_(most), last_(moment_of(process)) {}
  bool is_over() {
    const ProcessMoment now = moment_of(process_);
    left_ -= time_had(last_, now);
    last_ = now;
    return left_.count() < 0;
  }

 private:
  pid_t process_;
  std::chrono::nanoseconds left_;
  ProcessMoment last_;
};

}  // namespace plugrad
