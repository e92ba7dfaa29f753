#include <backends/cuda/sequence.hpp>

#include <backends/cuda/submission.hpp>

#include <algorithm>

namespace plugrad::cuda {
namespace {

__global__ void __launch_bounds__(kBlock) set_base_kernel(FailureWord::Word* to, FailureWord::Word base) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *to = base;
}

}  // namespace

void CudaStream::set_base(uint64_t number) {
  PLUGRAD_LAUNCH(set_base_kernel, 1, kBlock, 0, target(), claim_ + 1, FailureWord::pack(number, 0));
  backend_.check(cudaGetLastError(), "the first number of a graph");
}

GraphSequence::GraphSequence(CudaStream& stream, std::span<const plugrad_sequence_call> calls)
    : backend_(stream.backend()), stream_(stream), calls_(calls.begin(), calls.end()) {}

// CUDA keeps a destroyed graph until its last launch has ended.
GraphSequence::~GraphSequence() {
  if (!executable_ || backend_.lost()) return;
  try {
    const CallScope scope(backend_.index());
    if (cudaGraphExecDestroy(executable_) != cudaSuccess) cudaGetLastError();
  } catch (const BackendError&) {  // CUDA has failed: the process can only end
  }
}

void GraphSequence::run_calls() {
  for (size_t i = 0; i < calls_.size(); ++i) {
    const plugrad_sequence_call& c = calls_[i];
    plugrad_op op = *c.op;
    op.number = i;
    const plugrad_status status = c.kernel->run(c.kernel, stream_.Stream::handle(), &op);
    if (status != PLUGRAD_OK) throw CallFailed{status};
  }
  stream_.set_base(0);
}

cudaGraph_t GraphSequence::record() {
  stream_.begin_capture();
  try {
    run_calls();
  } catch (...) {
    if (const cudaGraph_t part = stream_.end_capture()) cudaGraphDestroy(part);
    throw;
  }
  const cudaGraph_t graph = stream_.end_capture();
  if (!graph) throw BackendError(PLUGRAD_UNSUPPORTED, "an op cannot be recorded in a graph");
  return graph;
}

// Updates the executable graph to the operands as they are, or makes it.
void GraphSequence::instantiate() {
  is_current_ = false;
  const cudaGraph_t graph = record();
  cudaGraphExecUpdateResultInfo info{};
  cudaError_t error = executable_ ? cudaGraphExecUpdate(executable_, graph, &info) : cudaErrorGraphExecUpdateFailure;
  if (error != cudaSuccess) {
    cudaGetLastError();
    if (executable_) cudaGraphExecDestroy(std::exchange(executable_, nullptr));
    error = cudaGraphInstantiate(&executable_, graph, 0);
  }
  cudaGraphDestroy(graph);
  backend_.check(error, "cudaGraphInstantiate");
  is_current_ = true;
}

void GraphSequence::make_current() {
  constexpr uint32_t kLongest = 1 << 20;
  if (skipped_ < pause_) {
    ++skipped_;
    throw BackendError(PLUGRAD_UNSUPPORTED, "an op could not be recorded in a graph");
  }
  try {
    instantiate();
    pause_ = 0;
  } catch (...) {
    pause_ = std::min(2 * pause_ + 1, kLongest);
    skipped_ = 0;
    throw;
  }
}

void GraphSequence::run(uint64_t first, Changes changes) {
  stream_.demand_sound();
  const CallScope scope(backend_.index());
  for (uint32_t i = 0; i < calls_.size() && is_current_; ++i) is_current_ = !changes.at(i);
  if (!is_current_) make_current();
  stream_.set_base(first);
  const cudaError_t launched = cudaGraphLaunch(executable_, stream_.handle());
  if (launched != cudaSuccess) {
    cudaGetLastError();
    stream_.set_base(0);
    backend_.check(launched, "cudaGraphLaunch");
  }
  stream_.submitted(first + calls_.size() - 1);
}

}  // namespace plugrad::cuda
