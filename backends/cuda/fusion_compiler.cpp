#include <backends/cuda/fusion_compiler.hpp>

#include <backends/cuda/code_cache.hpp>
#include <backends/cuda/error.hpp>

#include <plugrad/sdk/threads.hpp>

#include <sys/types.h>
#include <unistd.h>
#include <cstdlib>
#include <utility>

namespace plugrad::cuda {

// Never destroyed: its thread runs until the process ends.
FusionCompiler& FusionCompiler::get() {
  static FusionCompiler& compiler = *new FusionCompiler;
  return compiler;
}

void FusionCompiler::add(Job job) {
  stop_at_exit();
  const std::lock_guard lock(mutex_);
  if (!is_started_) {
    start_thread([this] { work(); });
    is_started_ = true;
  }
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

// The thread must stop before the process destroys objects of the compiler, which creates them on demand. exit() first
// destroys the thread-local objects of its calling thread, in most processes the first thread. If another thread calls
// exit(), it runs the function registered here before the destructors of objects with an earlier registration.
void FusionCompiler::stop_at_exit() {
  struct AtExit {
    bool is_first_thread = gettid() == getpid();
    ~AtExit() {
      if (is_first_thread) get().stop();
    }
  };
  thread_local const AtExit before_others;
  (void)before_others.is_first_thread;
  std::atexit([] { get().stop(); });
}

void FusionCompiler::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !jobs_.empty(); });
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    const bool may_compile = is_busy_ = !is_stopped_;
    lock.unlock();
    job(may_compile);
    if (may_compile) std::atexit([] { get().stop(); });
    lock.lock();
    if (may_compile && (jobs_.empty() || is_stopped_)) {
      lock.unlock();
      CodeCache::write_all();
      lock.lock();
    }
    is_busy_ = false;
    changed_.notify_all();
  }
}

void FusionCompiler::stop() {
  if (was_forked()) return;  // the thread is not in this process
  std::unique_lock lock(mutex_);
  is_stopped_ = true;
  changed_.wait(lock, [this] { return !is_busy_; });
}

}  // namespace plugrad::cuda
