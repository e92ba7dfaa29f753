#include <tools/plugrad/interrupt.hpp>

namespace plugrad::tool {
namespace {

// A signal handler may write only to this type.
volatile std::sig_atomic_t pending_signal = 0;

extern "C" void note_signal(int signal) {
  pending_signal = signal;
  // A second signal of these three ends the process; another write to a closed pipe does not, while the program saves.
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) std::signal(each, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  pending_signal = 0;
  struct sigaction action{};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int InterruptGuard::pending() { return pending_signal; }

}  // namespace plugrad::tool
