// A thread compiles fusions, one at a time.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace plugrad::cuda {

class FusionCompiler {
 public:
  static FusionCompiler& get();
  // ending: the process ends, and a job must not compile any more. last: no further job waits.
  enum class State : uint8_t { busy, last, ending };
  // The thread calls the job. Throws std::system_error if no thread can be started.
  using Job = std::function<void(State now)>;
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
