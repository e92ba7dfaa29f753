// The devices of the process, what is pinned, and the errors of calls.
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
  std::atomic<int> lost{cudaSuccess};    // what every call returns since a kernel failed
  std::atomic<bool> has_context{false};  // a call has used it
  std::mutex mutex;                    // of what follows
  std::vector<cudaStream_t> streams;
  cudaStream_t null_stream = nullptr;
  std::set<unsigned> peers;
};

// All of them; empty where there is no driver.
std::vector<Device*>& devices();
Device& selected();  // of the calling thread

// Why there are no devices; cudaSuccess where there are some.
cudaError_t without_device();

// The calling thread's last error becomes this one, unless it is none. Returns it.
cudaError_t noted(cudaError_t error);
void forget_error();
// What stands in the way of a call that asks about devices; noted.
cudaError_t present();
// What stands in the way of a call to the selected device, which is in use from then on; noted.
cudaError_t usable();
// The same for a call that CUDA refuses while another thread captures a graph.
cudaError_t usable_beside_captures();

// Writes it to stderr and keeps it for last_fault.
void report_fault(const std::string& text);

struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> blocks;
  bool covers(const void* address, size_t bytes);
};
Pinned& pinned();

// Counts a call of this kind; is it the one to fail?
bool injected(Injection injection);

}  // namespace simt
