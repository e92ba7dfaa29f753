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
  std::atomic<int> lost{cudaSuccess};  // what every call answers since a kernel failed
  std::mutex mutex;                    // of what follows
  std::vector<cudaStream_t> streams;
  cudaStream_t null_stream = nullptr;
  std::set<unsigned> peers;
};

// All of them; empty where there is no driver.
std::vector<Device*>& devices();
Device& selected();  // of the calling thread

// The calling thread's last error becomes this one, unless it is none. Answers it.
cudaError_t noted(cudaError_t error);
// What stands in the way of any call to the selected device; noted.
cudaError_t usable();

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
