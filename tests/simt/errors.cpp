// The errors of calls: preconditions, injected errors, names of errors; and the faults of kernels.
#include <tests/simt/device.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace simt {
namespace {
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
std::atomic<bool> captured_elsewhere{false}, capture_broken{false};

std::mutex& report_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::string& fault_text() {
  static auto* text = new std::string;
  return *text;
}

struct Countdown {
  std::atomic<uint64_t> calls{0}, fatal{0};
};
Countdown& countdown(Injection injection) {
  static auto* all = [] {
    auto* made = new Countdown[3];
    const Settings& s = settings();
    made[static_cast<int>(Injection::malloc_fails)].fatal = s.malloc_fails;
    made[static_cast<int>(Injection::launch_refused)].fatal = s.launch_refused;
    made[static_cast<int>(Injection::launch_faults)].fatal = s.launch_faults;
    return made;
  }();
  return all[static_cast<int>(injection)];
}

// An injected error, which the n-th call from now on returns once.
struct PlannedError {
  std::atomic<uint64_t> in{0};
  std::atomic<int> error{cudaSuccess};

  cudaError_t take() {
    if (!in || --in) return cudaSuccess;
    return static_cast<cudaError_t>(error.load());
  }
} planned;

// Returns whether the process was forked; CUDA does not survive that.
bool was_forked() {
  static const pid_t process = getpid();
  return getpid() != process;
}

struct Name {
  cudaError_t error;
  const char *name, *text;
};
#define PLUGRAD_SIMT_NAME(error, text) {error, #error, text}
constexpr Name kNames[] = {
    PLUGRAD_SIMT_NAME(cudaSuccess, "no error"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidValue, "invalid argument"),
    PLUGRAD_SIMT_NAME(cudaErrorMemoryAllocation, "out of memory"),
    PLUGRAD_SIMT_NAME(cudaErrorInitializationError, "initialization error"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    PLUGRAD_SIMT_NAME(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    PLUGRAD_SIMT_NAME(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    PLUGRAD_SIMT_NAME(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidDevice, "invalid device ordinal"),
    PLUGRAD_SIMT_NAME(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    PLUGRAD_SIMT_NAME(cudaErrorNotReady, "device not ready"),
    PLUGRAD_SIMT_NAME(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    PLUGRAD_SIMT_NAME(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    PLUGRAD_SIMT_NAME(cudaErrorAssert, "device-side assert triggered"),
    PLUGRAD_SIMT_NAME(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    PLUGRAD_SIMT_NAME(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    PLUGRAD_SIMT_NAME(cudaErrorMisalignedAddress, "misaligned address"),
    PLUGRAD_SIMT_NAME(cudaErrorLaunchFailure, "unspecified launch failure"),
    PLUGRAD_SIMT_NAME(cudaErrorNotSupported, "operation not supported"),
    PLUGRAD_SIMT_NAME(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    PLUGRAD_SIMT_NAME(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    PLUGRAD_SIMT_NAME(cudaErrorGraphExecUpdateFailure, "the graph update was not performed because of its structure"),
};
#undef PLUGRAD_SIMT_NAME

const Name* named(cudaError_t error) {
  const auto* found = std::ranges::find_if(kNames, [&](const Name& n) { return n.error == error; });
  return found == std::end(kNames) ? nullptr : found;
}
}  // namespace

cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
void forget_error() { last_error = cudaSuccess; }

cudaError_t present() {
  if (devices().empty()) return noted(without_device());
  if (was_forked()) return noted(cudaErrorInitializationError);
  return noted(static_cast<cudaError_t>(selected().lost.load()));
}

cudaError_t usable() {
  if (const cudaError_t error = present()) return error;
  selected().has_context = true;
  return noted(planned.take());
}

cudaError_t usable_beside_captures() {
  if (const cudaError_t error = usable()) return error;
  if (!captured_elsewhere || capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  capture_broken = true;
  return noted(cudaErrorStreamCaptureUnsupported);
}

void inject_error(int error, uint64_t n) {
  planned.error = error;
  planned.in = n;
}
void begin_capture_elsewhere() {
  capture_broken = false;
  captured_elsewhere = true;
}
bool end_capture_elsewhere() {
  captured_elsewhere = false;
  return !capture_broken;
}

void report_fault(const std::string& text) {
  const std::lock_guard lock(report_mutex());
  std::fprintf(stderr, "simt: %s\n", text.c_str());
  fault_text() = text;
}
std::string last_fault() {
  const std::lock_guard lock(report_mutex());
  return fault_text();
}
void clear_fault() {
  const std::lock_guard lock(report_mutex());
  fault_text().clear();
}

void inject(Injection injection, uint64_t n) {
  Countdown& one = countdown(injection);
  one.fatal = n ? one.calls + n : 0;
}
bool injected(Injection injection) {
  Countdown& one = countdown(injection);
  return ++one.calls == one.fatal;
}

}  // namespace simt

using namespace simt;

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}
// A lost device returns its error from every call.
cudaError_t cudaPeekAtLastError() {
  const int lost = devices().empty() ? cudaSuccess : selected().lost.load();
  return lost ? static_cast<cudaError_t>(lost) : last_error;
}
const char* cudaGetErrorName(cudaError_t error) {
  const Name* found = named(error);
  return found ? found->name : "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  const Name* found = named(error);
  return found ? found->text : "unrecognized error code";
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return cudaSuccess;
}
