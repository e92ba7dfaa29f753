// Lists: the ops of a compiled step as one CUDA graph, and updates of many parameters in few launches.
#pragma once
#include <backends/cuda/stream.hpp>

#include <plugrad/sdk/list.hpp>

#include <vector>

namespace plugrad::cuda {

// The kernels record themselves: a graph is what they submit to a stream that captures. The first run in which none declines
// records it. Where operands changed, all of it is recorded again and the executable graph updated. While a kernel declines,
// as a fusion does that is still being compiled, the list declines too; the longer that lasts, the more rarely it tries
// to record. Neighbouring updates whose memories do not overlap are recorded as one submission.
class GraphList final : public CallList {
 public:
  GraphList(CudaStream& stream, std::span<const plugrad_list_call> calls);
  ~GraphList() override;
  void run(uint64_t first, Changes changes) override;

 private:
  cudaGraph_t record();
  void run_calls();
  size_t updates_from(size_t first) const;
  void run_one(size_t call);
  void instantiate();
  void make_current();

  CudaBackend& backend_;
  CudaStream& stream_;
  const std::vector<plugrad_list_call> calls_;
  cudaGraphExec_t executable_ = nullptr;
  bool is_current_ = false;           // the graph has the operands of the last run
  uint32_t pause_ = 0, skipped_ = 0;  // runs without an attempt to record after one that failed, and how many of them were
};

// Updates by one kernel, in as few launches as possible.
class UpdateBatch final : public CallList {
 public:
  UpdateBatch(CudaStream& stream, std::span<const plugrad_list_call> calls)
      : stream_(stream), calls_(calls.begin(), calls.end()) {}
  void run(uint64_t first, Changes changes) override;

 private:
  CudaStream& stream_;
  const std::vector<plugrad_list_call> calls_;
};

}  // namespace plugrad::cuda
