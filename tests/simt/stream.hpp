// Streams, each a thread that runs jobs in order, and events.
#pragma once
#include <tests/simt/execution.hpp>

#include <simt/library.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace simt {

// A point in a stream's work. An event refers to the mark of its latest recording.
struct Mark {
  std::atomic<bool> done{false};
  std::chrono::steady_clock::time_point when;
  void set();
  void wait() const { done.wait(false, std::memory_order_acquire); }
};

struct Job {
  std::function<void(SharedRange)> run;
  // The devices whose memory the job accesses; if both are null, it also runs on a lost device.
  Device *first = nullptr, *second = nullptr;
  const void* function = nullptr;  // the kernel of a launch
};

// The jobs that a stream captured instead of running them.
struct Capture {
  std::vector<Job> jobs;
  bool is_valid = true;  // every captured call can be part of a graph
};

const Library& library();

}  // namespace simt

struct CUstream_st : simt::StreamHead {
 public:
  CUstream_st(simt::Device& owner, bool blocks);
  // Waits while the queue is full (1024 jobs).
  void push(simt::Job job);
  std::shared_ptr<simt::Mark> mark();  // completes after all jobs pushed so far
  void drain();
  bool idle();
  void finish();  // ends the stream after its jobs
  // Between these two calls, jobs are captured. end_capture returns null if no capture was begun.
  bool begin_capture();
  std::unique_ptr<simt::Capture> end_capture();
  // For calls that a capturing stream does not support. Returns whether the stream captures, and makes its capture invalid.
  bool spoils_capture();

  simt::Device& device;
  const bool blocking;  // synchronises with the null stream

 private:
  void work();
  void run(simt::Job& job, simt::SharedRange shared);
  void keep_step();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<simt::Job> jobs_;
  std::unique_ptr<simt::Capture> capture_;
  bool ending_ = false;
};

struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<simt::Mark> mark;  // null: never recorded, counts as completed
  bool timed = true;
  simt::Device* device = nullptr;
};

namespace simt {
// The stream of a handle; null means the selected device's null stream.
CUstream_st& stream_of(cudaStream_t stream);
}  // namespace simt
