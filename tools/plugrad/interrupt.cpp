#include <tools/plugrad/interrupt.hpp>

namespace plugrad::tool {
namespace {

// A signal handler may write to no other type.
volatile std::sig_atomic_t pending_signal = 0;

extern "C" void note_signal(int signal) {
  pending_signal = signal;
  // The second signal ends the process, whichever of the two it is.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  pending_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

int InterruptGuard::pending() { return pending_signal; }

}  // namespace plugrad::tool
