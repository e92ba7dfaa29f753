// CUDA's functions for streams, events and launches.
#include <tests/simt/stream.hpp>

#include <algorithm>
#include <map>

using namespace simt;

namespace {
constexpr uint64_t kOldest = 75;  // the oldest capability that the plugin's code supports
constexpr int kDynamicDefault = 48 << 10, kDynamicMost = 96 << 10;

struct FunctionLimits {
  std::mutex mutex;
  std::map<const void*, int> dynamic;
};
FunctionLimits& function_limits() {
  static auto* all = new FunctionLimits;
  return *all;
}

std::shared_ptr<Mark> mark_of(cudaEvent_t event) {
  const std::lock_guard lock(event->mutex);
  return event->mark;
}
}  // namespace

namespace simt {

cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* function) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  FunctionLimits& limits = function_limits();
  const std::lock_guard lock(limits.mutex);
  const auto found = limits.dynamic.find(function);
  attributes->maxDynamicSharedSizeBytes = found == limits.dynamic.end() ? kDynamicDefault : found->second;
  return cudaSuccess;
}
cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attribute, int value) {
  if (const cudaError_t error = usable()) return error;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > kDynamicMost) return noted(cudaErrorInvalidValue);
  const std::lock_guard lock(function_limits().mutex);
  function_limits().dynamic[function] = value;
  return cudaSuccess;
}
cudaError_t occupancy(int* blocks, int block, size_t dynamic_bytes) {
  if (const cudaError_t error = usable()) return error;
  if (settings().capability < kOldest) return noted(cudaErrorNoKernelImageForDevice);
  if (block < 1 || block > 1024) return noted(cudaErrorInvalidValue);
  *blocks = std::min(2048 / block, dynamic_bytes ? static_cast<int>(kDynamicMost / dynamic_bytes) : 32);
  return cudaSuccess;
}

void submit(Kernel kernel, cudaStream_t stream) {
  if (usable()) return;
  if (&stream_of(stream).device != &selected()) {
    noted(cudaErrorInvalidResourceHandle);
    return;
  }
  if (settings().capability < kOldest) {
    noted(cudaErrorNoKernelImageForDevice);
    return;
  }
  Refusal refused = refusal(kernel);
  if (injected(Injection::launch_refused))
    refused = {cudaErrorInvalidConfiguration, with_kernel(kernel, "launch refused, injected by a test")};
  if (refused.error) {
    report_fault(refused.why);
    noted(refused.error);
    return;
  }
  const bool faults = injected(Injection::launch_faults);
  CUstream_st& queue = stream_of(stream);
  Device& device = queue.device;
  const void* const function = kernel.function;
  queue.push({[kernel = std::move(kernel), &device, faults](SharedRange shared) {
                if (faults) throw Fault(cudaErrorIllegalAddress, with_kernel(kernel, "fails, injected by a test"));
                execute(kernel, device, shared);
              },
              &device, nullptr, function});
}

}  // namespace simt

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t error = usable()) return error;
  Device& device = selected();
  *stream = new CUstream_st(device, !(flags & cudaStreamNonBlocking));
  const std::lock_guard lock(device.mutex);
  device.streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream) return noted(cudaErrorInvalidResourceHandle);
  {
    const std::lock_guard lock(stream->device.mutex);
    std::erase(stream->device.streams, stream);
  }
  stream->finish();
  return usable();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = usable_beside_captures()) return error;
  CUstream_st& queue = stream_of(stream);
  if (queue.spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);
  queue.drain();
  return noted(static_cast<cudaError_t>(queue.device.lost.load()));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = usable_beside_captures()) return error;
  CUstream_st& queue = stream_of(stream);
  if (queue.spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);
  const bool idle = queue.idle();
  if (queue.device.lost) return noted(static_cast<cudaError_t>(queue.device.lost.load()));
  return noted(idle ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = usable()) return error;
  const auto mark = mark_of(event);
  if (mark) stream_of(stream).push({[mark](SharedRange) { mark->wait(); }});
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (const cudaError_t error = usable()) return error;
  stream_of(stream).push({[=](SharedRange) { function(data); }});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t error = usable()) return error;
  *event = new CUevent_st;
  (*event)->timed = !(flags & cudaEventDisableTiming);
  (*event)->device = &selected();
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return usable();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = usable()) return error;
  CUstream_st& queue = stream_of(stream);
  if (event->device != &queue.device) return noted(cudaErrorInvalidResourceHandle);
  if (queue.spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);  // CUDA supports this, the emulator does not
  const auto mark = std::make_shared<Mark>();
  queue.push({[mark](SharedRange) { mark->set(); }});
  const std::lock_guard lock(event->mutex);
  event->mark = mark;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = usable_beside_captures()) return error;
  const auto mark = mark_of(event);
  const bool done = !mark || mark->done.load(std::memory_order_acquire);
  if (event->device->lost) return noted(static_cast<cudaError_t>(event->device->lost.load()));
  return noted(done ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = usable_beside_captures()) return error;
  if (const auto mark = mark_of(event)) mark->wait();
  return noted(static_cast<cudaError_t>(event->device->lost.load()));
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t error = usable()) return error;
  const auto from = mark_of(start), to = mark_of(end);
  if (!from || !to || !start->timed || !end->timed) return noted(cudaErrorInvalidResourceHandle);
  if (!from->done || !to->done) return noted(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(to->when - from->when).count();
  return cudaSuccess;
}
