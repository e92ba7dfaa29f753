#include <process/process_state.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace plugrad {
namespace {

uint32_t arithmetic_mode() {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & ~0x3fu;  // without the flags of past exceptions
#else
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return static_cast<uint32_t>(mode);
#endif
}

// Reading the mask by umask itself would change it for other threads.
mode_t current_umask() {
  if (FILE* file = std::fopen("/proc/self/status", "re")) {
    char line[256];
    unsigned mask = 0;
    bool found = false;
    while (!found && std::fgets(line, sizeof line, file)) found = std::sscanf(line, "Umask: %o", &mask) == 1;
    std::fclose(file);
    if (found) return mask;
  }
  const mode_t mask = umask(077);
  umask(mask);
  return mask;
}

bool same_directory(int before) {
  struct stat then, now;
  return fstat(before, &then) || stat(".", &now) || (then.st_dev == now.st_dev && then.st_ino == now.st_ino);
}

// The C library sets this flag itself (SA_RESTORER of Linux), so a restored handler has it.
constexpr int kOfTheLibrary = 0x04000000;

bool same_handler(const struct sigaction& a, const struct sigaction& b) {
  const bool same = a.sa_flags & SA_SIGINFO ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler;
  return same && (a.sa_flags | kOfTheLibrary) == (b.sa_flags | kOfTheLibrary);
}

constexpr __itimer_which_t kTimers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

void add(std::string& changed, const std::string& what) { changed += (changed.empty() ? "" : ", ") + what; }

}  // namespace

ProcessState::ProcessState()
    : process_(getpid()), rounding_(std::fegetround()), mode_(arithmetic_mode()), umask_(current_umask()),
      directory_(open(".", O_PATH | O_CLOEXEC)), locale_(std::setlocale(LC_ALL, nullptr)),
      thread_locale_(uselocale(locale_t{})) {
  std::fegetenv(&arithmetic_);
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
  for (int i = 1; i < kSignals; ++i)
    if (sigaction(i, nullptr, &handlers_[static_cast<size_t>(i)])) handlers_[static_cast<size_t>(i)].sa_flags = -1;
  for (int i = 0; i < 3; ++i) standard_[static_cast<size_t>(i)] = fcntl(i, F_DUPFD_CLOEXEC, 3);
  for (size_t i = 0; i < std::size(kTimers); ++i) getitimer(kTimers[i], &timers_[i]);
  for (size_t i = 0; i < limits_.size(); ++i) getrlimit(static_cast<__rlimit_resource_t>(i), &limits_[i]);
}

ProcessState::~ProcessState() {
  if (directory_ >= 0) close(directory_);
  for (const int each : standard_)
    if (each >= 0) close(each);
}

void ProcessState::restore_arithmetic(std::string& changed) noexcept {
  const bool rounds = std::fegetround() != rounding_;
  const bool other = arithmetic_mode() != mode_;
  if (rounds || other) add(changed, rounds ? "the rounding mode" : "the floating-point mode");
  std::fesetenv(&arithmetic_);
}

void ProcessState::restore_signals(std::string& changed, bool expects_handlers) noexcept {
  for (int i = 1; i < kSignals; ++i) {
    const struct sigaction& before = handlers_[static_cast<size_t>(i)];
    struct sigaction now;
    if (before.sa_flags == -1 || sigaction(i, nullptr, &now) || same_handler(before, now)) continue;
    sigaction(i, &before, nullptr);
    if (expects_handlers) continue;
    const char* name = sigabbrev_np(i);
    add(changed, "the handler of " + (name ? "SIG" + std::string(name) : "signal " + std::to_string(i)));
  }
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, &mask_, &now);
  for (int i = 1; i < kSignals; ++i)
    if (sigismember(&now, i) != sigismember(&mask_, i)) return add(changed, "the signal mask");
}

void ProcessState::restore_files(std::string& changed) noexcept {
  if (current_umask() != umask_) {
    umask(umask_);
    add(changed, "the umask");
  }
  if (directory_ >= 0 && !same_directory(directory_) && fchdir(directory_) == 0) add(changed, "the current directory");
}

void ProcessState::restore_locale(std::string& changed) noexcept {
  bool same = locale_ == std::setlocale(LC_ALL, nullptr);
  if (!(std::locale() == cpp_locale_)) {
    std::locale::global(cpp_locale_);
    same = false;
  }
  if (!same) std::setlocale(LC_ALL, locale_.c_str());
  if (uselocale(locale_t{}) != thread_locale_) {
    uselocale(thread_locale_);
    same = false;
  }
  if (!same) add(changed, "the locale");
}

void ProcessState::restore_standard_files(std::string& changed) noexcept {
  constexpr const char* kNames[] = {"standard input", "standard output", "standard error"};
  for (int i = 0; i < 3; ++i) {
    const int before = standard_[static_cast<size_t>(i)];
    struct stat then, now;
    const bool is_open = fstat(i, &now) == 0, was_open = before >= 0 && fstat(before, &then) == 0;
    if (is_open == was_open && (!is_open || (then.st_dev == now.st_dev && then.st_ino == now.st_ino))) continue;
    if (was_open) dup2(before, i);
    else close(i);
    add(changed, kNames[i]);
  }
}

// If the hard limit of a resource was lowered, this function restores only its soft limit.
void ProcessState::restore_limits(std::string& changed) noexcept {
  const auto is_set = [](const struct timeval& time) { return time.tv_sec || time.tv_usec; };
  for (size_t i = 0; i < std::size(kTimers); ++i) {
    struct itimerval now;
    const struct itimerval& before = timers_[i];
    const bool ran = is_set(before.it_value);
    if (getitimer(kTimers[i], &now) || is_set(now.it_value) == ran) continue;
    if (ran && !is_set(before.it_interval)) continue;  // it went off meanwhile
    setitimer(kTimers[i], &before, nullptr);
    add(changed, "a timer");
  }
  for (size_t i = 0; i < limits_.size(); ++i) {
    const auto limit = static_cast<__rlimit_resource_t>(i);
    struct rlimit now;
    if (getrlimit(limit, &now) || (now.rlim_cur == limits_[i].rlim_cur && now.rlim_max == limits_[i].rlim_max)) continue;
    now.rlim_cur = std::min(limits_[i].rlim_cur, now.rlim_max);
    if (setrlimit(limit, &limits_[i])) setrlimit(limit, &now);
    add(changed, "a limit of resources");
  }
}

std::string ProcessState::restore(bool expects_handlers) noexcept {
  if (getpid() != process_) _exit(0);
  std::string changed;
  restore_arithmetic(changed);
  restore_signals(changed, expects_handlers);
  restore_files(changed);
  restore_locale(changed);
  restore_standard_files(changed);
  restore_limits(changed);
  return changed;
}

}  // namespace plugrad
