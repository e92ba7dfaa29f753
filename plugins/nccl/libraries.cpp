#include <plugins/nccl/libraries.hpp>

#include <backends/cuda/library.hpp>

#include <memory>
#include <stdexcept>

// A build, such as the emulator's, may fix the files.
#ifndef PLUGRAD_NCCL_LIBRARY
#define PLUGRAD_NCCL_LIBRARY nullptr
#endif
#ifndef PLUGRAD_NCCL_DRIVER
#define PLUGRAD_NCCL_DRIVER "libcuda.so.1"
#endif

namespace nccl {
namespace {

const plugrad::cuda::LibraryPlaces kPlaces{
    "PLUGRAD_NCCL", PLUGRAD_NCCL_LIBRARY, {"libnccl.so.2"}, {"nvidia/nccl/lib/libnccl.so.2"}};

// Finds functions until one is missing.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}
  template <class F> Finder& operator()(const char* name, F& function) {
    if (missing_.empty() && !plugrad::cuda::find_function(library_, name, function)) missing_ = name;
    return *this;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

std::string find_nccl(void* library, Functions& f) {
  return Finder(library)("ncclGetVersion", f.get_version)("ncclGetUniqueId", f.get_unique_id)(
             "ncclCommInitRankConfig", f.init_rank)("ncclCommFinalize", f.finalize)("ncclCommDestroy", f.destroy)(
             "ncclCommAbort", f.abort)("ncclCommGetAsyncError", f.async_error)("ncclGetErrorString", f.error_string)(
             "ncclGetLastError", f.last_error)("ncclBroadcast", f.broadcast)("ncclAllReduce", f.all_reduce)(
             "ncclReduceScatter", f.reduce_scatter)("ncclAllGather", f.all_gather)("ncclSend", f.send)("ncclRecv", f.recv)(
             "ncclGroupStart", f.group_start)("ncclGroupEnd", f.group_end)
      .missing();
}

std::string find_driver(void* library, Driver& d) {
  return Finder(library)("cuInit", d.init)("cuDeviceGetCount", d.count)("cuDeviceGet", d.device)(
             "cuDevicePrimaryCtxRetain", d.retain_context)("cuCtxSetCurrent", d.set_context)(
             "cuStreamCreate", d.create_stream)("cuStreamDestroy_v2", d.destroy_stream)("cuMemAlloc_v2", d.allocate)(
             "cuMemFree_v2", d.free)("cuMemAllocHost_v2", d.allocate_host)("cuMemFreeHost", d.free_host)(
             "cuMemcpyHtoDAsync_v2", d.upload)("cuMemcpyDtoHAsync_v2", d.download)("cuEventCreate", d.create_event)(
             "cuEventRecord", d.record)("cuEventQuery", d.query)("cuEventDestroy_v2", d.destroy_event)("cuGetErrorString",
                                                                                                       d.error_string)
      .missing();
}

void open_nccl(Libraries& all) {
  std::string why = "no NCCL; looked for";
  for (const std::string& name : plugrad::cuda::candidates(kPlaces)) {
    why += " " + name;
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    const std::string missing = find_nccl(library, all.nccl);
    int number = 0;
    if (missing.empty() && all.nccl.get_version(&number) == kSuccess && number >= static_cast<int>(kVersion)) {
      all.version =
          std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
      return;
    }
    why += missing.empty() ? " (older than 2.14)" : " (lacks " + missing + ")";
  }
  throw std::runtime_error(why +
                           ". Install NCCL with `pip install nvidia-nccl-cu13`, or -cu12, or set PLUGRAD_NCCL to the "
                           "absolute path of libnccl.so.2");
}

void open_driver(Libraries& all) {
  void* const library = dlopen(PLUGRAD_NCCL_DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error("no CUDA driver: " + std::string(dlerror()));
  const std::string missing = find_driver(library, all.driver);
  if (!missing.empty()) throw std::runtime_error("the CUDA driver lacks " + missing);
  if (const int result = all.driver.init(0))
    throw std::runtime_error("the CUDA driver does not start: cuInit returned " + std::to_string(result));
}

}  // namespace

const Libraries& libraries() {
  static const Libraries* opened = nullptr;  // never destroyed: groups may end as the process does
  if (opened) return *opened;
  auto all = std::make_unique<Libraries>();
  open_driver(*all);
  open_nccl(*all);
  opened = all.release();
  return *opened;
}

}  // namespace nccl
