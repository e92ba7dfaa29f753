#include <backends/cuda/program_compiler.hpp>

#include <plugrad/sdk/threads.hpp>

#include <cstdlib>
#include <utility>

namespace plugrad::cuda {

// Never destroyed: its thread runs until the process ends.
ProgramCompiler& ProgramCompiler::get() {
  static ProgramCompiler& compiler = *new ProgramCompiler;
  return compiler;
}

void ProgramCompiler::add(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (!is_started_) {
    start_thread([this] { work(); });
    stop_at_exit();
    is_started_ = true;
  }
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

// The compiler must not run on while the process destroys what it uses: exit runs this before it destroys what was made
// earlier, so it is said again after the first job, which makes what the library keeps.
void ProgramCompiler::stop_at_exit() {
  std::atexit([] { get().stop(); });
}

void ProgramCompiler::work() {
  std::unique_lock lock(mutex_);
  for (bool is_first = true;; is_first = false) {
    changed_.wait(lock, [this] { return !jobs_.empty() && !is_stopped_; });
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    is_busy_ = true;
    lock.unlock();
    job();
    if (is_first) stop_at_exit();
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

void ProgramCompiler::stop() {
  std::unique_lock lock(mutex_);
  is_stopped_ = true;
  changed_.wait(lock, [this] { return !is_busy_; });
}

}  // namespace plugrad::cuda
