// Who is told when numbers are over: for each stream that somebody asks about, a thread that waits for events.
#pragma once
#include <backends/cuda/error.hpp>

#include <plugrad/sdk/native.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace plugrad::cuda {

class CudaBackend;
class CudaStream;

// An event of the backend's device.
class Event {
 public:
  explicit Event(CudaBackend& backend);  // the device is selected
  ~Event();                              // with any device selected
  Event(Event&& other) noexcept : backend_(other.backend_), event_(std::exchange(other.event_, nullptr)) {}
  cudaEvent_t get() const { return event_; }

 private:
  CudaBackend& backend_;
  cudaEvent_t event_ = nullptr;
};

// The notices of one stream, and the thread that gives them. CUDA would call a host function by itself, but not after a
// failure, and the stream would wait for it. Made on the first notice; lives as long as the process.
class Watcher {
 public:
  explicit Watcher(CudaStream& stream);  // throws where there is no thread
  // Takes the notice of an event that stands for all up to `number`.
  void add(Event event, uint64_t number, Notice notice);

 private:
  struct Pending {
    Event event;
    uint64_t number;
    Notice notice;
  };
  [[noreturn]] void work();
  bool over(const Pending& pending) noexcept;

  CudaStream& stream_;
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Pending> pending_;
};

class Watchers {
 public:
  Watcher& of(CudaStream& stream);

 private:
  std::mutex mutex_;
  std::map<CudaStream*, std::unique_ptr<Watcher>> all_;
};

}  // namespace plugrad::cuda
