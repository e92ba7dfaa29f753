// The submission of one op to a stream.
#pragma once
#include <backends/cuda/backend.hpp>
#include <backends/cuda/launch.hpp>
#include <backends/cuda/map.hpp>

#include <plugrad/sdk/backend.hpp>

#include <algorithm>
#include <atomic>

namespace plugrad::cuda {

// A kernel's report of an index out of range. The ops of a stream run in order, so the thread with the claim on the word in
// device memory belongs to the first failing op. Only this thread writes to pinned memory, with a volatile store, visible to
// the host. An atomic operation on host memory would need support from the bus.
struct IndexReport {
  FailureWord::Word* claim;   // device memory; the word behind it is added to the value, for an op in a graph
  FailureWord::Word* report;  // pinned memory
  FailureWord::Word value;

  __device__ void operator()() const {
    if (*static_cast<volatile FailureWord::Word*>(claim) != FailureWord::kNone) return;
    const FailureWord::Word mine = value + claim[1];
    if (atomicCAS(claim, FailureWord::Word{FailureWord::kNone}, mine) == FailureWord::kNone)
      *static_cast<volatile FailureWord::Word*>(report) = mine;
  }
};

// Caches how many blocks of a kernel a multiprocessor holds at once: CUDA is queried once per kernel and device.
class Occupancy {
 public:
  template <class Kernel> int of(Kernel kernel, int device, size_t shared_bytes = 0) {
    std::atomic<int>& known = blocks_[device % kDevices];
    int blocks = known.load(std::memory_order_relaxed);
    if (blocks) [[likely]]
      return blocks;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kBlock, shared_bytes), "a kernel of this plugin");
    known.store(blocks = std::max(blocks, 1), std::memory_order_relaxed);
    return blocks;
  }

 private:
  static constexpr int kDevices = 16;
  std::atomic<int> blocks_[kDevices] = {};
};

class Submission {
 public:
  explicit Submission(const Call& call)
      : call_(call), stream_(call.stream<CudaStream>()), backend_(stream_.backend()), scope_(backend_.index()) {
    stream_.demand_sound();
  }

  CudaStream& stream() const { return stream_; }
  CudaBackend& backend() const { return backend_; }
  cudaStream_t handle() const { return stream_.target(); }
  IndexReport index_report() const {
    return {stream_.failure_claim(), stream_.failure_word(), FailureWord::pack(call_.op().number, call_.op().opcode)};
  }
  bool is_deterministic() const { return (call_.op().flags & PLUGRAD_DETERMINISTIC) || backend_.deterministic(); }

  // The grid of a kernel whose blocks loop over tiles: enough blocks to fill the device kRounds times. The last blocks then
  // leave little of it idle.
  template <class Kernel> unsigned blocks(Kernel kernel, uint64_t tiles, Occupancy& occupancy) const {
    constexpr uint64_t kRounds = 4;
    if (tiles <= static_cast<uint64_t>(backend_.multiprocessors())) return static_cast<unsigned>(tiles);
    const uint64_t full =
        static_cast<uint64_t>(occupancy.of(kernel, backend_.index())) * static_cast<uint64_t>(backend_.multiprocessors());
    return static_cast<unsigned>(std::min(tiles, full * kRounds));
  }
  // Checks for a launch error. Called after each launch.
  void launched() const {
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) [[unlikely]]
      backend_.check(error, op_info(call_.op().opcode)->name);
  }
  void finish() const { stream_.submitted(call_.op().number); }

 private:
  const Call& call_;
  CudaStream& stream_;
  CudaBackend& backend_;
  DeviceScope scope_;
};

// The run function of a kernel row: Function(call, submission) launches the kernels.
template <auto Function> void submit(const Call& call) {
  const Submission submission(call);
  Function(call, submission);
  submission.finish();
}

}  // namespace plugrad::cuda
