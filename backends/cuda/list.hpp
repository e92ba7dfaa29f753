// Lists: the ops of a compiled step as one CUDA graph, and updates of many parameters in few launches.
#pragma once
#include <backends/cuda/stream.hpp>

#include <plugrad/sdk/list.hpp>

#include <vector>

namespace plugrad::cuda {

// The kernels record themselves: a graph holds their submissions to a capturing stream. The first run without a declining
// kernel records the graph. If operands change, the whole graph is recorded again and the executable graph updated. While a
// kernel declines, such as a fusion during its compilation, the list declines too; the longer this lasts, the more rarely
// the list tries to record. Neighbouring updates whose memories do not overlap are recorded as one submission.
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
  uint32_t pause_ = 0, skipped_ = 0;  // runs without an attempt to record after a failed attempt: in all, and so far
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
