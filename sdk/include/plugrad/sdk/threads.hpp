// Threads of a plugin. The host's signal handlers belong on the host's own threads, so a plugin's threads block all signals.
#pragma once
#include <csignal>
#include <thread>
#include <utility>

namespace plugrad {

// Blocks all signals of the calling thread while this object lives. Threads started meanwhile inherit the mask.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// Starts a thread that runs `work`, blocks all signals and is never joined. Throws std::system_error if the system allows no
// more threads, and std::bad_alloc.
template <class F> void start_thread(F&& work) {
  const BlockedSignals blocked;
  std::thread(std::forward<F>(work)).detach();
}

}  // namespace plugrad
