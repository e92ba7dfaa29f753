// The state of the process; a plugin's code must leave it as it is.
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

// The constructor saves the state. restore undoes later changes to the floating-point environment and the signal mask of
// this thread, and to the signal handlers, umask, locale, current directory, interval timers, limits of resources and
// standard files of the process. In a copy of the process forked meanwhile, restore ends the copy. (A library built with
// -ffast-math, for instance, flushes denormals to zero in its loading thread.) Takes about 60 us; changes made by other
// threads at the same time are lost.
class ProcessState {
 public:
  ProcessState();
  ~ProcessState();
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;

  // Returns the names of the restored parts, separated by commas; "" if nothing had changed. With expects_handlers, signal
  // handlers are restored but not named.
  std::string restore(bool expects_handlers = false) noexcept;

 private:
  static constexpr int kSignals = 65;

  void restore_arithmetic(std::string& changed) noexcept;
  void restore_signals(std::string& changed, bool expects_handlers) noexcept;
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
  std::array<int, 3> standard_;  // copies of the descriptors 0 to 2; -1 if closed
  std::array<struct itimerval, 3> timers_;
  std::array<struct rlimit, RLIM_NLIMITS> limits_;
};

}  // namespace plugrad
