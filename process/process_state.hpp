// The state of the process that a plugin's code must leave as it is.
#pragma once
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <array>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <locale>
#include <string>

namespace plugrad {

// Saves the state where it is created. restore puts back what has changed since: the floating-point environment and the
// signal mask of this thread, and the signal handlers, umask, locale, current directory, interval timers, limits of
// resources and standard files of the process; it ends a copy of the process that was forked since. (-ffast-math, for
// instance, makes a library flush denormals to zero in the thread that loads it.) Takes about 60 us; other threads that
// change such state at the same time lose their change.
class ProcessState {
 public:
  ProcessState();
  ~ProcessState();
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;

  // Returns the names of what it put back, separated by commas; "" if nothing had changed.
  std::string restore() noexcept;

 private:
  static constexpr int kSignals = 65;

  void restore_arithmetic(std::string& changed) noexcept;
  void restore_signals(std::string& changed) noexcept;
  void restore_files(std::string& changed) noexcept;
  void restore_locale(std::string& changed) noexcept;
  void restore_standard_files(std::string& changed) noexcept;
  void restore_limits(std::string& changed) noexcept;

  pid_t process_;
  std::fenv_t arithmetic_;
  int rounding_;
  uint32_t mode_;  // the processor's control register for floating point
  sigset_t mask_;
  std::array<struct sigaction, kSignals> handlers_;
  mode_t umask_;
  int directory_;
  std::string locale_;
  locale_t thread_locale_;
  std::locale cpp_locale_;
  std::array<int, 3> standard_;  // copies of the descriptors 0 to 2; -1 for one that is closed
  std::array<struct itimerval, 3> timers_;
  std::array<struct rlimit, RLIM_NLIMITS> limits_;
};

}  // namespace plugrad
