// An opened CUDA device.
#pragma once
#include <backends/cuda/blas.hpp>
#include <backends/cuda/fusion.hpp>
#include <backends/cuda/native.hpp>
#include <backends/cuda/stream.hpp>

#include <plugrad/sdk/fusion.hpp>
#include <plugrad/sdk/list.hpp>
#include <plugrad/sdk/native.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::cuda {

class CudaBackend final : public Backend, public NativeStreams, public Fusions, public CallLists {
 public:
  explicit CudaBackend(const Opening& opening);

  static DeviceCount count();
  plugrad_device_info info() const override { return info_; }

  Rows kernels() const override { return rows_; }
  bool prepare(const KernelRow& row, const plugrad_signature& signature) override;

  plugrad_buffer* alloc(uint64_t bytes) override;
  void free(plugrad_buffer* buffer) noexcept override;
  void memory_info(uint64_t& free_bytes, uint64_t& total_bytes) override;
  void* pin(uint64_t bytes) override;
  void unpin(void* address) noexcept override;
  void copy(Stream* stream, const plugrad_copy& copy) override;

  std::unique_ptr<Stream> stream_create(uint32_t role) override;
  plugrad_status completed(Stream& stream, uint64_t& number) noexcept override;
  void wait(Stream& stream, Stream& other, uint64_t& number) override;
  void sync(Stream& stream, plugrad_failure& failure) override;

  void* native_handle(Stream& stream) override;
  void wait_native(Stream& stream, uint64_t number, void* native) override;
  void signal_native(Stream& stream, uint64_t number, void* native) override;
  void notify(Stream& stream, uint64_t number, Notice notice) override;

  static const void* extension(std::string_view name) noexcept;
  std::unique_ptr<CallList> make_list(Stream& stream, std::span<const plugrad_list_call> calls, uint32_t flags) override;
  bool batches(const plugrad_kernel& kernel) const noexcept override;

  const plugrad_kernel* fusion_kernel(OpenDevice& device, const plugrad_fusion& fusion) override;

  int index() const { return index_; }
  int multiprocessors() const { return multiprocessors_; }
  bool tf32() const { return tf32_; }
  bool deterministic() const { return deterministic_; }
  const Blas* blas() const { return blas_.get(); }  // valid if a stream has a handle
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  // Marks the device as lost, permanently. `why` is the message of the first failed call; later messages are ignored.
  void lose(const std::string& why);
  [[noreturn]] void throw_lost();
  // Like plugrad::cuda::check, but also detects a lost device. The device is selected.
  void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) [[unlikely]]
      fail(error, what);
  }
  void destroy(cudaEvent_t event) noexcept;  // with any device selected
  // Logs a warning on the first call in the process, and nothing later.
  void warn_of_fusions(const std::string& why) const;
  // Opens cuBLAS on the first call and gives each compute stream, present and future, a handle. [any]
  void open_blas();

 private:
  [[noreturn]] void fail(cudaError_t error, const char* what);
  bool answers() const noexcept;
  template <class F> void release(F f) noexcept;
  void enable_peer(int peer);
  void copy_between(const plugrad_copy& copy, cudaStream_t stream);
  void warn(const std::string& message) const;
  void give_blas(CudaStream& stream);  // blas_mutex_ held
  void order_streams(cudaStream_t earlier, cudaStream_t later);

  static constexpr int kPeers = 64;

  const plugrad_host* host_;
  int index_, multiprocessors_ = 1;
  bool tf32_, deterministic_, graphs_ = false;
  plugrad_device_info info_;
  std::vector<KernelRow> rows_;
  Compiling fusions_;
  std::string architecture_;          // "sm_90"
  std::optional<std::string> cache_;  // the directory of compiled fusions; none: the user's
  std::string build_;                 // of the plugin, when the device was opened
  std::mutex codes_mutex_;
  std::unique_ptr<CodeCache> codes_;
  FusionKernels fusion_kernels_;
  std::atomic<bool> lost_{false};
  std::mutex lost_mutex_;
  std::string lost_why_;
  cudaStream_t probe_ = nullptr;          // stays empty; queried to test whether the device still works
  std::atomic<bool> peers_[kPeers] = {};  // devices for which peer access was already requested

  std::mutex blas_mutex_;
  std::unique_ptr<const Blas> blas_;
  std::vector<std::unique_ptr<const BlasHandle>> blas_handles_;
  bool blas_tried_ = false;
  std::vector<CudaStream*> streams_;
  Watchers watchers_;
};

}  // namespace plugrad::cuda
