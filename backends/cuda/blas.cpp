#include <backends/cuda/blas.hpp>

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace plugrad::cuda {
namespace {

// The file that the variable names, alone; else the usual names, then the usual folder.
std::vector<std::string> candidates() {
  if (const char* named = secure_getenv("PLUGRAD_CUBLAS")) return {named};
  std::vector<std::string> names;
  for (const char* folder : {"", "/usr/local/cuda/lib64/"})
    for (const int major : {13, 12}) names.push_back(folder + std::string("libcublas.so.") + std::to_string(major));
  return names;
}

template <class F> bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::unique_ptr<const Blas> Blas::open(std::string& why) {
#ifdef PLUGRAD_SIMT
  why = "no cuBLAS: it knows nothing of the emulator's memory";
  return nullptr;
#endif
  why = "no cuBLAS:";
  for (const std::string& name : candidates()) {
    why += " " + name;
    void* library =
        name.find('/') == std::string::npos || name[0] == '/' ? dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library) continue;
    auto blas = std::make_unique<Blas>();
    if (find(library, "cublasCreate_v2", blas->create) && find(library, "cublasSetStream_v2", blas->set_stream) &&
        find(library, "cublasSetWorkspace_v2", blas->set_workspace) && find(library, "cublasGemmEx", blas->gemm) &&
        find(library, "cublasGemmStridedBatchedEx", blas->gemm_strided_batched))
      return blas;
    why += " (lacks a function)";
  }
  why += "; matrix products are slower by our own kernel. PLUGRAD_CUBLAS names the file, with its absolute path";
  return nullptr;
}

cublas::Handle Blas::handle(cudaStream_t stream, uint64_t workspace_bytes) const {
  cublas::Handle made = nullptr;
  void* workspace = nullptr;
  if (create(&made) != cublas::kSuccess) return nullptr;
  if (cudaMalloc(&workspace, workspace_bytes) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  if (set_stream(made, stream) != cublas::kSuccess) return nullptr;
  return set_workspace(made, workspace, workspace_bytes) == cublas::kSuccess ? made : nullptr;
}

}  // namespace plugrad::cuda
