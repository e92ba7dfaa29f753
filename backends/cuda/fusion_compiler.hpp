// A thread compiles fusions, one at a time. When none waits, it writes their code to disk.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace plugrad::cuda {

class FusionCompiler {
 public:
  static FusionCompiler& get();
  // The thread calls the job. `may_compile` is false if the process is ending: the job must not compile any more. Throws
  // std::system_error if no thread can be started.
  using Job = std::function<void(bool may_compile)>;
  void add(Job job);

 private:
  FusionCompiler() = default;
  void work();
  void stop();
  static void stop_at_exit();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool is_started_ = false, is_busy_ = false, is_stopped_ = false;
};

}  // namespace plugrad::cuda
