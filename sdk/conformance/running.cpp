#include <sdk/conformance/running.hpp>
#include <sdk/conformance/sanitizer.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace plugrad::conformance {
namespace {

// A plain array: a signal handler may read nothing else.
char running[256];

void write_out(const char* text) { [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, text, std::strlen(text)); }

void last_words(int signal) {
  write_out("FAIL ");
  write_out(running);
  write_out(": the process was ended by ");
  write_out(signal == SIGSEGV   ? "SIGSEGV"
            : signal == SIGBUS  ? "SIGBUS"
            : signal == SIGFPE  ? "SIGFPE"
            : signal == SIGILL  ? "SIGILL"
            : signal == SIGABRT ? "SIGABRT"
                                : "a signal");
  write_out("; run it in a debugger with --only\n");
  _exit(1);
}

}  // namespace

void note_running(const std::string& what) {
  const size_t length = std::min(what.size(), sizeof running - 1);
  std::memcpy(running, what.data(), length);
  running[length] = 0;
}

void report_crashes() {
  if (kSanitized) return;
  struct sigaction action {};
  action.sa_handler = last_words;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

}  // namespace plugrad::conformance
