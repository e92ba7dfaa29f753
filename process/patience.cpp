#include <process/patience.hpp>

#include <process/file_text.hpp>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string>

namespace plugrad {
namespace {

// The state is the first word after the name in parentheses; the name may contain anything. A thread may end meanwhile.
bool runs(const std::filesystem::path& thread) {
  const std::string text = file_text(thread / "stat").value_or("");
  const size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] == 'R';
}

}  // namespace

ProcessMoment moment_of(pid_t process) {
  ProcessMoment now{std::chrono::steady_clock::now()};
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &time)) return now;
  now.processor = std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  std::error_code error;
  std::filesystem::directory_iterator thread("/proc/" + std::to_string(process) + "/task", error);
  for (; !error && thread != end(thread) && !now.wants_processor; thread.increment(error))
    now.wants_processor = runs(thread->path());
  return now;
}

std::chrono::nanoseconds time_had(const ProcessMoment& before, const ProcessMoment& now) {
  const std::chrono::nanoseconds passed = now.time - before.time, got = now.processor - before.processor;
  return now.wants_processor ? std::min(passed, got) : passed;
}

}  // namespace plugrad
