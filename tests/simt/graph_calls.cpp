// CUDA's functions for graphs. A graph is a list of jobs in the order in which a stream captured them.
#include <tests/simt/stream.hpp>

#include <algorithm>

using namespace simt;

struct CUgraph_st {
  std::vector<Job> jobs;
};
// Launches in flight own the jobs that they run.
struct CUgraphExec_st {
  std::vector<Job> jobs;
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (const cudaError_t error = usable()) return error;
  return noted(stream && stream->begin_capture() ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (const cudaError_t error = usable()) return error;
  const std::unique_ptr<Capture> captured = stream->end_capture();
  if (!captured) return noted(cudaErrorInvalidValue);
  if (!captured->is_valid) return noted(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(captured->jobs)};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = usable()) return error;
  *executable = new CUgraphExec_st{graph->jobs};
  return cudaSuccess;
}

// Updates only graphs with the same kernels, as CUDA does.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  if (const cudaError_t error = usable()) return error;
  const auto same = [](const Job& a, const Job& b) { return a.function == b.function; };
  info->result = std::ranges::equal(executable->jobs, graph->jobs, same) ? 0 : 1;
  if (info->result) return noted(cudaErrorGraphExecUpdateFailure);
  executable->jobs = graph->jobs;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (const cudaError_t error = usable()) return error;
  for (const Job& job : executable->jobs) stream_of(stream).push(job);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return usable();
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return usable();
}
