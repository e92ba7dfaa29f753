#include <backends/cuda/backend.hpp>

#include <backends/cuda/architecture.hpp>
#include <backends/cuda/list.hpp>
#include <backends/cuda/probe.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/updates.hpp>
#include <plugrad/backends/cuda.hpp>

#ifndef PLUGRAD_CUDA_NAME
#define PLUGRAD_CUDA_NAME "cuda"
#endif
#ifndef PLUGRAD_CUDA_FUSIONS
#define PLUGRAD_CUDA_FUSIONS 1  // the default of the option
#endif
#ifndef PLUGRAD_CUDA_GRAPHS
#define PLUGRAD_CUDA_GRAPHS 1  // the same
#endif
#ifndef PLUGRAD_CUDA_CACHE
#define PLUGRAD_CUDA_CACHE nullptr  // the same
#endif

namespace plugrad::cuda {
namespace {

constexpr uint64_t kAlignment = 256;  // guaranteed by cudaMalloc

using Table = Rows (*)();
constexpr Table kTables[] = {arithmetic_rows, function_rows,      comparison_rows,        copy_rows,
                             update_rows,     sum_rows,           extreme_rows,           argmax_rows,
                             softmax_rows,    cross_entropy_rows, row_norm_rows,          batch_norm_rows,
                             cumsum_rows,     topk_rows,          argsort_rows,           random_rows,
                             matmul_rows,     quantized_rows,     attention_rows,         indexing_rows,
                             pooling_rows,    convolution_rows,   attention_backward_rows};

}  // namespace

CudaBackend::CudaBackend(const Opening& opening)
    : host_(opening.host), index_(static_cast<int>(opening.index)), info_(host_info("", PLUGRAD_ASYNC)) {
  const Options& options = opening.options;
  options.allow({"memory", "flush_to_zero", "tf32", "deterministic", "graphs", "fusions", "cache"});
  options.integer("memory", 0, 0, INT64_MAX);  // enforced by the core
  options.integer("flush_to_zero", 0, 0, 0);   // the kernels keep denormals
  tf32_ = options.integer("tf32", 0, 0, 1) != 0;
  graphs_ = options.integer("graphs", PLUGRAD_CUDA_GRAPHS, 0, 1) != 0;
  fusions_ = static_cast<Compiling>(options.integer("fusions", PLUGRAD_CUDA_FUSIONS, 0, 2));
  deterministic_ = options.integer("deterministic", 0, 0, 1) != 0;
  constexpr const char* kDefaultCache = PLUGRAD_CUDA_CACHE;
  const char* const cache = options.find("cache") ? options.find("cache") : kDefaultCache;
  if (cache) cache_ = cache;
  build_ = build_of_plugin();
  if (was_forked()) throw BackendError(PLUGRAD_DEVICE_LOST, kForked);
  const CallScope scope(index_);
  info_.alignment = kAlignment;
  describe_device(index_, info_);
  multiprocessors_ = demand_architecture(index_);
  architecture_ = architecture_name(index_);
  cuda::check(cudaStreamCreateWithFlags(&probe_, cudaStreamNonBlocking), "cudaStreamCreate");
  for (const Table rows : kTables)
    for (const KernelRow& row : rows()) rows_.push_back(row);
}

DeviceCount CudaBackend::count() { return count_devices(); }

// After a kernel has failed, every later call returns an error too. An error with another cause, such as a graph capture by
// another library, concerns its call only, and the device stays usable.
void CudaBackend::fail(cudaError_t error, const char* what) {
  cudaGetLastError();
  const std::string message = std::string(what) + ": " + describe(error);
  if (status_of(error) == PLUGRAD_OUT_OF_MEMORY || answers()) throw BackendError(status_of(error), message);
  if (was_forked()) throw BackendError(PLUGRAD_DEVICE_LOST, message + "; " + kForked);
  lose(message + "; the device is lost for this process. PLUGRAD_SYNC=1 reports a failure at the op itself");
  throw_lost();
}

bool CudaBackend::answers() const noexcept {
  const RelaxedScope scope;
  const cudaError_t answer = cudaStreamQuery(probe_);
  cudaGetLastError();
  return answer == cudaSuccess || answer == cudaErrorNotReady;
}

void CudaBackend::lose(const std::string& why) {
  const std::lock_guard lock(lost_mutex_);
  if (!lost_.exchange(true)) lost_why_ = why;
}

// Every later call throws the original message, because the first call with an error may have been unable to report it.
void CudaBackend::throw_lost() {
  const std::lock_guard lock(lost_mutex_);
  throw BackendError(PLUGRAD_DEVICE_LOST, lost_why_);
}

// --- Memory. On a lost device, release frees nothing and reports no error.

template <class F> void CudaBackend::release(F f) noexcept {
  if (lost()) return;
  try {
    const CallScope scope(index_);
    if (f() != cudaSuccess) cudaGetLastError();
  } catch (const BackendError&) {
    return;  // the device cannot be selected, so nothing can be freed
  }
}

const void* CudaBackend::extension(std::string_view name) noexcept {
  constexpr uint32_t kContents =
      PLUGRAD_FUSION_REDUCTIONS | PLUGRAD_FUSION_ROWS | PLUGRAD_FUSION_UPDATES | PLUGRAD_FUSION_ALIKE;
  constexpr uint64_t kLongestRow = 4096;  // a team has a whole row, and few teams work on long rows
  if (name == PLUGRAD_FUSIONS) return &kFusions<CudaBackend, kContents, 1, kLongestRow>;
  return name == PLUGRAD_LISTS ? &kLists<CudaBackend> : nullptr;
}

// The kernel of a fusion has no row.
bool CudaBackend::batches(const plugrad_kernel& kernel) const noexcept {
  const KernelRow* const row = static_cast<const BoundKernel&>(kernel).row;
  return row && op_info(row->opcode)->shape == OpShape::update;
}

std::unique_ptr<CallList> CudaBackend::make_list(Stream& stream, std::span<const plugrad_list_call> calls, uint32_t flags) {
  auto& on = static_cast<CudaStream&>(stream);
  if (flags & PLUGRAD_LIST_ONCE) {
    if (!(flags & PLUGRAD_LIST_INDEPENDENT) || !batches(*calls[0].kernel))
      throw BackendError(PLUGRAD_UNSUPPORTED, "of lists that run once, only batches of updates are one submission");
    return std::make_unique<UpdateBatch>(on, calls);
  }
  if (!graphs_) throw BackendError(PLUGRAD_UNSUPPORTED, "graphs are off: the device's option graphs is 0");
  return std::make_unique<GraphList>(on, calls);
}

const plugrad_kernel* CudaBackend::fusion_kernel(OpenDevice& device, const plugrad_fusion& fusion) {
  if (fusions_ == Compiling::never || lost() || was_forked()) return nullptr;
  static std::string why;
  static const std::unique_ptr<const Nvrtc> nvrtc = Nvrtc::open(why);
  if (!nvrtc) warn_of_fusions(why);
  if (!nvrtc) return nullptr;
  {
    const std::lock_guard lock(codes_mutex_);
    if (!codes_)
      codes_ = std::make_unique<CodeCache>(PLUGRAD_CUDA_NAME, architecture_, nvrtc->version(), build_,
                                           cache_ ? cache_->c_str() : nullptr);
  }
  auto made = make_fusion(device, fusion, {*nvrtc, *codes_, architecture_});
  if (!made) return nullptr;
  FusionKernel& kernel = *made;
  fusion_kernels_.keep(std::move(made));
  compile_fusion(kernel, fusions_);
  return &kernel;
}

void CudaBackend::warn_of_fusions(const std::string& why) const {
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true)) warn(why);
}

plugrad_buffer* CudaBackend::alloc(uint64_t bytes) {
  const CallScope scope(index_);
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return static_cast<plugrad_buffer*>(memory);
}

void CudaBackend::free(plugrad_buffer* buffer) noexcept {
  release([buffer] { return cudaFree(buffer); });
}

void CudaBackend::memory_info(uint64_t& free_bytes, uint64_t& total_bytes) {
  const CallScope scope(index_);
  size_t now = 0, all = 0;
  check(cudaMemGetInfo(&now, &all), "cudaMemGetInfo");
  free_bytes = now;
  total_bytes = all;
}

void* CudaBackend::pin(uint64_t bytes) {
  const CallScope scope(index_);
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return memory;
}

void CudaBackend::unpin(void* address) noexcept {
  release([address] { return cudaFreeHost(address); });
}

void CudaBackend::destroy(cudaEvent_t event) noexcept {
  release([event] { return cudaEventDestroy(event); });
}

// --- Streams.

std::unique_ptr<Stream> CudaBackend::stream_create(uint32_t role) {
  if (lost()) throw_lost();
  const CallScope scope(index_);
  auto stream = std::make_unique<CudaStream>(*this);
  if (role == PLUGRAD_COPY_STREAM) return stream;
  const std::lock_guard lock(blas_mutex_);
  streams_.push_back(stream.get());
  if (blas_) give_blas(*stream);
  return stream;
}

plugrad_status CudaBackend::completed(Stream& stream, uint64_t& number) noexcept {
  return static_cast<CudaStream&>(stream).completed(number);
}

void CudaBackend::wait(Stream& stream, Stream& other, uint64_t& number) {
  auto& waiting = static_cast<CudaStream&>(stream);
  waiting.demand_sound();
  static_cast<CudaStream&>(other).make_wait(waiting.handle(), number);
}

void CudaBackend::sync(Stream& stream, plugrad_failure& failure) {
  const CallScope scope(index_);
  static_cast<CudaStream&>(stream).sync(failure);
}

// --- cuBLAS.

void CudaBackend::warn(const std::string& message) const {
  host_->log(host_, PLUGRAD_WARNING, (PLUGRAD_CUDA_NAME ": " + message).c_str());
}

void CudaBackend::open_blas() {
  const std::lock_guard lock(blas_mutex_);
  if (std::exchange(blas_tried_, true) || lost()) return;
  std::string why;
  blas_ = Blas::open(why);
  if (!blas_) {
    static std::atomic<bool> is_said{false};  // a single warning for all devices
    if (!is_said.exchange(true)) warn(why);
    return;
  }
  const CallScope scope(index_);
  for (CudaStream* stream : streams_) give_blas(*stream);
}

void CudaBackend::give_blas(CudaStream& stream) {
  auto handle = blas_->handle(stream.handle());
  if (!handle)
    return warn("cannot create a cuBLAS handle or allocate its workspace of " +
                std::to_string(Blas::workspace_bytes() >> 20) +
                " MiB; matrix products use our own kernel, which is several times slower");
  stream.blas = handle.get();
  blas_handles_.push_back(std::move(handle));
}

// Opens cuBLAS when a kernel for matrix products is resolved: the contract allows a library to be loaded only here. Without
// it products use our own kernel.
bool CudaBackend::prepare(const KernelRow& row, const plugrad_signature&) {
  if (row.opcode != PLUGRAD_OP_MATMUL && row.opcode != PLUGRAD_OP_MATMUL_ADD) return true;
  try {
    open_blas();
  } catch (const std::exception& error) {
    warn(error.what());
  }
  return true;
}

}  // namespace plugrad::cuda

extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_cuda_backend(const plugrad_host*) {
  static constexpr plugrad_backend table = plugrad::backend_table<plugrad::cuda::CudaBackend>(PLUGRAD_CUDA_NAME, "0.1.0");
  return &table;
}
