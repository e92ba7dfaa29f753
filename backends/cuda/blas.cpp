#include <backends/cuda/blas.hpp>

#include <backends/cuda/library.hpp>

// A build, such as the emulator's, may fix the file to open as cuBLAS.
#ifndef PLUGRAD_CUDA_CUBLAS
#define PLUGRAD_CUDA_CUBLAS nullptr
#endif

namespace plugrad::cuda {
namespace {

const LibraryPlaces kPlaces{
    "PLUGRAD_CUBLAS",
    PLUGRAD_CUDA_CUBLAS,
    {"libcublas.so.13", "libcublas.so.12"},
    {"nvidia/cu13/lib/libcublas.so.13", "nvidia/cublas/lib/libcublas.so.13", "nvidia/cublas/lib/libcublas.so.12"}};

// cuBLAS needs libcublasLt of the same version. The loader does not search beside cuBLAS, but uses a copy already loaded.
void* open_library(const std::string& name) {
  const size_t folder_end = name.rfind('/');
  if (folder_end == std::string::npos) return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (name[0] != '/') return nullptr;
  std::string lt = name;
  if (const size_t at = lt.find("libcublas.", folder_end); at != std::string::npos) {
    lt.insert(at + std::string("libcublas").size(), "Lt");
    dlopen(lt.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::vector<std::string> cublas_candidates() { return candidates(kPlaces); }

std::unique_ptr<const Blas> Blas::open(std::string& why) {
  why = "no cuBLAS; looked for";
  for (const std::string& name : cublas_candidates()) {
    why += " " + name;
    void* library = open_library(name);
    if (!library) continue;
    auto blas = std::make_unique<Blas>();
    const auto find = [library](const char* function, auto& into) { return find_function(library, function, into); };
    if (find("cublasCreate_v2", blas->create) && find("cublasDestroy_v2", blas->destroy) &&
        find("cublasSetMathMode", blas->set_math_mode) && find("cublasSetStream_v2", blas->set_stream) &&
        find("cublasSetWorkspace_v2", blas->set_workspace) && find("cublasGemmEx", blas->gemm) &&
        find("cublasGemmStridedBatchedEx", blas->gemm_strided_batched) && find("cublasGemmBatchedEx", blas->gemm_batched)) {
      blas->lt = BlasLt::find(library);
      return blas;
    }
    why += " (lacks a function)";
  }
  why +=
      ". Matrix products use our own kernel, which is several times slower. Install cuBLAS with `pip install "
      "nvidia-cublas` or the CUDA toolkit, or set PLUGRAD_CUBLAS to the absolute path of libcublas.so.13 or .12";
  return nullptr;
}

uint64_t Blas::workspace_bytes() {
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  constexpr uint64_t kMebibyte = 1 << 20;
  return major < 9 ? 4 * kMebibyte : major < 12 ? 32 * kMebibyte : 12 * kMebibyte;
}

std::unique_ptr<const BlasHandle> Blas::handle(cudaStream_t stream) const {
  const uint64_t workspace_size = workspace_bytes();
  cublas::Handle made = nullptr;
  void* memory = nullptr;
  if (create(&made) != cublas::kSuccess) return nullptr;
  if (set_math_mode(made, cublas::kRoundOnce) == cublas::kSuccess &&
      cudaMalloc(&memory, workspace_size + BlasHandle::kPointerBytes) == cudaSuccess) {
    auto all = std::make_unique<const BlasHandle>(BlasHandle{made, static_cast<char*>(memory), workspace_size});
    if (point(*all, stream)) return all;
  }
  cudaFree(memory);
  cudaGetLastError();
  destroy(made);
  return nullptr;
}

// A change of the stream makes cuBLAS forget the workspace.
bool Blas::point(const BlasHandle& handle, cudaStream_t stream) const {
  return set_stream(handle.handle, stream) == cublas::kSuccess &&
         set_workspace(handle.handle, handle.workspace, handle.workspace_bytes) == cublas::kSuccess;
}

}  // namespace plugrad::cuda
