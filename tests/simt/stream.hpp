// Streams: a thread each, that does jobs in order, and events.
#pragma once
#include <tests/simt/execution.hpp>

#include <simt/library.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>

namespace simt {

// Something that happens once in a stream; an event stands for the one of its latest record.
struct Mark {
  std::atomic<bool> done{false};
  std::chrono::steady_clock::time_point when;
  void set();
  void wait() const { done.wait(false, std::memory_order_acquire); }
};

struct Job {
  std::function<void(SharedRange)> run;
  // Device memory that it needs; both null: it runs on a lost device too.
  Device *first = nullptr, *second = nullptr;
};

const Library& library();

}  // namespace simt

struct CUstream_st : simt::StreamHead {
 public:
  CUstream_st(simt::Device& owner, bool blocks);
  // Waits for room: a queue holds 1024 jobs.
  void push(simt::Job job);
  std::shared_ptr<simt::Mark> mark();  // of all that was pushed
  void drain();
  bool idle();
  void finish();  // it ends when its jobs are done

  simt::Device& device;
  const bool blocking;  // in step with the null stream

 private:
  void work();
  void run(simt::Job& job, simt::SharedRange shared);
  void keep_step();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<simt::Job> jobs_;
  bool ending_ = false;
};

struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<simt::Mark> mark;  // null: never recorded, which counts as done
  bool timed = true;
  simt::Device* device = nullptr;
};

namespace simt {
// The stream of a handle, where null means the selected device's own.
CUstream_st& stream_of(cudaStream_t stream);
}  // namespace simt
