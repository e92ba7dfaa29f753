#include <backends/cuda/list.hpp>

#include <backends/cuda/submission.hpp>
#include <backends/cuda/updates.hpp>
#include <plugrad/sdk/extent.hpp>

#include <algorithm>
#include <vector>

namespace plugrad::cuda {
namespace {

__global__ void __launch_bounds__(kBlock) set_base_kernel(FailureWord::Word* to, FailureWord::Word base) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *to = base;
}

// Whether no call writes to memory that another call reads or writes.
bool are_independent(std::span<const plugrad_list_call> calls) {
  std::vector<MemoryExtent> extents;
  for (uint32_t at = 0; at < calls.size(); ++at)
    for (int k = 0; k < calls[at].op->outputs + calls[at].op->inputs; ++k)
      if (const plugrad_view& view = *calls[at].op->views[k]; !is_immediate(view) && view.count)
        extents.push_back(extent_of(view, reinterpret_cast<uint64_t>(data<char>(view)), k < calls[at].op->outputs, at));
  return plugrad::are_independent(extents);
}

// Submits independent updates by one kernel, under the numbers from `first` on.
void run_batch(std::span<const plugrad_list_call> calls, CudaStream& stream, uint64_t first) {
  std::vector<plugrad_op> ops;
  for (const plugrad_list_call& each : calls) {
    ops.push_back(*each.op);
    ops.back().number = first + ops.size() - 1;
  }
  std::vector<const plugrad_op*> pointers;
  for (const plugrad_op& each : ops) pointers.push_back(&each);
  run_updates(*calls[0].kernel, stream, pointers);
}

}  // namespace

void CudaStream::set_base(uint64_t number) {
  PLUGRAD_LAUNCH(set_base_kernel, 1, kBlock, 0, target(), claim_ + 1, FailureWord::pack(number, 0));
  backend_.check(cudaGetLastError(), "the first number of a graph");
}

GraphList::GraphList(CudaStream& stream, std::span<const plugrad_list_call> calls)
    : backend_(stream.backend()), stream_(stream), calls_(calls.begin(), calls.end()) {}

// CUDA keeps a destroyed graph until its last launch has ended.
GraphList::~GraphList() {
  if (!executable_ || backend_.lost()) return;
  try {
    const CallScope scope(backend_.index());
    if (cudaGraphExecDestroy(executable_) != cudaSuccess) cudaGetLastError();
  } catch (const BackendError&) {  // CUDA has failed: the process can only end
  }
}

void GraphList::run_calls() {
  for (size_t i = 0; i < calls_.size();) {
    const size_t end = updates_from(i);
    end - i > 1 ? run_batch(std::span(calls_).subspan(i, end - i), stream_, i) : run_one(i);
    i = end;
  }
  stream_.set_base(0);
}

void GraphList::run_one(size_t call) {
  const plugrad_list_call& c = calls_[call];
  plugrad_op op = *c.op;
  op.number = call;
  const plugrad_status status = c.kernel->run(c.kernel, stream_.Stream::handle(), &op);
  if (status != PLUGRAD_OK) throw CallFailed{status};
}

// Returns the end of the run of updates from `first` on that can be recorded as one submission; at least `first` + 1.
size_t GraphList::updates_from(size_t first) const {
  if (!backend_.batches(*calls_[first].kernel)) return first + 1;
  size_t end = first + 1;
  while (end < calls_.size() && calls_[end].kernel == calls_[first].kernel) ++end;
  while (end - first > 1 && !are_independent(std::span(calls_).subspan(first, end - first))) end = first + (end - first) / 2;
  return end;
}

cudaGraph_t GraphList::record() {
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
void GraphList::instantiate() {
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

void GraphList::make_current() {
  constexpr uint32_t kLongest = 1 << 20;
  if (skipped_ < pause_) {
    ++skipped_;
    throw BackendError(PLUGRAD_UNSUPPORTED, "an op could not be recorded in a graph");
  }
  try {
    instantiate();
    pause_ = 0;
  } catch (...) {
    pause_ = std::min(pause_ + pause_ / 2 + 1, kLongest);
    skipped_ = 0;
    throw;
  }
}

void GraphList::run(uint64_t first, Changes changes) {
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

void UpdateBatch::run(uint64_t first, Changes) { run_batch(calls_, stream_, first); }

}  // namespace plugrad::cuda
