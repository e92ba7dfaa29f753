// The devices of the process, pinned memory, and the errors of calls.
#pragma once
#include <tests/simt/block.hpp>
#include <tests/simt/memory.hpp>

#include <cuda_runtime.h>
#include <simt/control.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace simt {

struct Device {
  Device(unsigned number, uint64_t bytes) : index(number), memory(number, bytes) {}

  const unsigned index;
  Memory memory;
  std::atomic<int> lost{cudaSuccess};    // the error that every call returns after a kernel has failed
  std::atomic<bool> has_context{false};  // a call has used the device
  std::mutex mutex;                      // guards the members below
  std::vector<cudaStream_t> streams;
  cudaStream_t null_stream = nullptr;
  std::set<unsigned> peers;
};

// All devices; empty without a driver.
std::vector<Device*>& devices();
Device& selected();  // of the calling thread

// The reason why there are no devices, or cudaSuccess.
cudaError_t without_device();

// Stores `error` as the calling thread's last error unless it is cudaSuccess, and returns it.
cudaError_t noted(cudaError_t error);
void forget_error();
// The error that a call about devices returns before it starts, or cudaSuccess; stores it as the last error.
cudaError_t present();
// The same for a call to the selected device. The device has a context from then on.
cudaError_t usable();
// The same for a call that CUDA refuses while another thread captures a graph.
cudaError_t usable_beside_captures();

// Writes the message to stderr and stores it for last_fault.
void report_fault(const std::string& text);

struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> blocks;
  bool covers(const void* address, size_t bytes);
};
Pinned& pinned();

// Counts a call of this kind; returns whether this call must fail.
bool injected(Injection injection);

}  // namespace simt
