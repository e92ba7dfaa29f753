// Sequences: the ops of a compiled step as one CUDA graph.
#pragma once
#include <backends/cuda/stream.hpp>

#include <plugrad/sdk/sequence.hpp>

#include <vector>

namespace plugrad::cuda {

// The kernels record themselves: a graph is what they submit to a stream that captures. The first run in which none declines
// records it. Where operands changed, all of it is recorded again and the executable graph updated. While a kernel declines,
// as a program does that is still being compiled, the sequence declines too; the longer that lasts, the more rarely it tries
// to record. Neighbouring updates whose memories do not overlap are recorded as one submission.
class GraphSequence final : public Sequence {
 public:
  GraphSequence(CudaStream& stream, std::span<const plugrad_sequence_call> calls);
  ~GraphSequence() override;
  void run(uint64_t first, Changes changes) override;

 private:
  cudaGraph_t record();
  void run_calls();
  size_t updates_from(size_t first) const;
  void run_one(size_t call);
  void run_together(size_t first, size_t end);
  void instantiate();
  void make_current();

  CudaBackend& backend_;
  CudaStream& stream_;
  const std::vector<plugrad_sequence_call> calls_;
  cudaGraphExec_t executable_ = nullptr;
  bool is_current_ = false;           // the graph has the operands of the last run
  uint32_t pause_ = 0, skipped_ = 0;  // runs without an attempt to record after one that failed, and how many of them were
};

}  // namespace plugrad::cuda
