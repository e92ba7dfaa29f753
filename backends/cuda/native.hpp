// Notices of completed numbers: each stream with a notice has a thread to wait for events.
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

// The notices of a stream, and their calling thread. CUDA could call a host function (cudaLaunchHostFunc), but it does not
// after a failure, and the stream would wait for the function. Created on the first notice, never destroyed.
class Watcher {
 public:
  explicit Watcher(CudaStream& stream);  // throws if no thread can be started
  // Calls `notice` once `event` has completed, and with it all ops up to `number`.
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
