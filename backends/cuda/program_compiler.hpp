// The thread that compiles programs, one after the other.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace plugrad::cuda {

class ProgramCompiler {
 public:
  static ProgramCompiler& get();
  // Throws std::system_error if no thread can be started.
  void add(std::function<void()> job);

 private:
  ProgramCompiler() = default;
  void work();
  void stop();
  static void stop_at_exit();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool is_started_ = false, is_busy_ = false, is_stopped_ = false;
};

}  // namespace plugrad::cuda
