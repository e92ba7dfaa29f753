// CUDA's functions for libraries of kernels. The code of a library is the path of a shared object: see simt/module.hpp.
#include <simt/module.hpp>
#include <tests/simt/stream.hpp>

#include <dlfcn.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace simt;

struct CUkern_st {
  MakeKernel make;
};
struct CUlib_st {
  explicit CUlib_st(void* opened) : object(opened) {}
  void* object;
  std::vector<std::unique_ptr<CUkern_st>> kernels;
};

namespace {
// As in CUDA's driver, a library exists until it is unloaded, even if its caller does not keep the handle.
cudaLibrary_t keep(std::unique_ptr<CUlib_st> library) {
  static std::mutex mutex;
  static auto& all = *new std::vector<std::unique_ptr<CUlib_st>>;
  const std::lock_guard lock(mutex);
  return all.emplace_back(std::move(library)).get();
}
}  // namespace

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  if (const cudaError_t error = usable()) return error;
  void* const object = dlopen(static_cast<const char*>(code), RTLD_NOW | RTLD_LOCAL);
  if (!object) return noted(cudaErrorInvalidKernelImage);
  *library = keep(std::make_unique<CUlib_st>(object));
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  if (const cudaError_t error = usable()) return error;
  const auto make = reinterpret_cast<MakeKernel>(dlsym(library->object, (std::string("simt_kernel_") + name).c_str()));
  if (!make) return noted(cudaErrorSymbolNotFound);
  *kernel = library->kernels.emplace_back(std::make_unique<CUkern_st>(CUkern_st{make})).get();
  return cudaSuccess;
}

// The function must be a cudaKernel_t.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t dynamic_bytes,
                             cudaStream_t stream) {
  static constexpr Emulator kEmulator{&threadIdx, &blockIdx,      &blockDim,   &gridDim, barrier, meet,
                                      lane,       dynamic_shared, note_atomic, note_sum, fence,   trap};
  Kernel kernel{};
  static_cast<const CUkern_st*>(function)->make(&kernel, arguments, kEmulator);
  kernel.grid = grid;
  kernel.block = block;
  kernel.dynamic_bytes = dynamic_bytes;
  submit(std::move(kernel), stream);
  return cudaPeekAtLastError();
}
