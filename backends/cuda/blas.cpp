#include <backends/cuda/blas.hpp>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

// A build may fix the file that it opens as cuBLAS, as the emulator's build does.
#ifndef PLUGRAD_CUDA_CUBLAS
#define PLUGRAD_CUDA_CUBLAS nullptr
#endif

namespace plugrad::cuda {
namespace {

namespace fs = std::filesystem;

// The library's path in the nvidia-cublas wheels, relative to site-packages.
constexpr const char* kInSitePackages[] = {
    "nvidia/cu13/lib/libcublas.so.13",
    "nvidia/cublas/lib/libcublas.so.13",
    "nvidia/cublas/lib/libcublas.so.12",
};

void add_wheels(const fs::path& site_packages, std::vector<std::string>& found) {
  std::error_code ignored;
  for (const char* file : kInSitePackages)
    if (const fs::path candidate = site_packages / file; fs::exists(candidate, ignored)) found.push_back(candidate);
}

// The plugin itself may be part of a wheel. Only package folders among its parents are searched, because anybody may be able
// to write to the others, such as /tmp.
void add_beside_plugin(std::vector<std::string>& found) {
  Dl_info own{};
  if (!dladdr(reinterpret_cast<void*>(&add_wheels), &own) || !own.dli_fname) return;
  std::error_code failed;
  for (fs::path folder = fs::absolute(own.dli_fname, failed); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "site-packages" || folder.filename() == "dist-packages") add_wheels(folder, found);
}

// The Python environment that the shell has activated.
void add_prefix(const char* variable, std::vector<std::string>& found) {
  const char* prefix = secure_getenv(variable);
  if (!prefix || prefix[0] != '/') return;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(prefix) / "lib", failed))
    if (entry.path().filename().string().starts_with("python3")) add_wheels(entry.path() / "site-packages", found);
}

template <class F> bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

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

// PLUGRAD_CUBLAS names the only candidate if it is set.
std::vector<std::string> cublas_candidates() {
  constexpr const char* brought = PLUGRAD_CUDA_CUBLAS;
  if (const char* named = secure_getenv("PLUGRAD_CUBLAS")) return {named};
  if (brought) return {brought};
  std::vector<std::string> found = {"libcublas.so.13", "libcublas.so.12"};
  add_beside_plugin(found);
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) add_prefix(variable, found);
  for (const char* file : {"libcublas.so.13", "libcublas.so.12"})
    found.push_back(std::string("/usr/local/cuda/lib64/") + file);
  return found;
}

std::unique_ptr<const Blas> Blas::open(std::string& why) {
  why = "no cuBLAS; looked for";
  for (const std::string& name : cublas_candidates()) {
    why += " " + name;
    void* library = open_library(name);
    if (!library) continue;
    auto blas = std::make_unique<Blas>();
    if (find(library, "cublasCreate_v2", blas->create) && find(library, "cublasSetStream_v2", blas->set_stream) &&
        find(library, "cublasSetWorkspace_v2", blas->set_workspace) && find(library, "cublasGemmEx", blas->gemm) &&
        find(library, "cublasGemmStridedBatchedEx", blas->gemm_strided_batched) &&
        find(library, "cublasGemmBatchedEx", blas->gemm_batched))
      return blas;
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
  if (cudaMalloc(&memory, workspace_size + BlasHandle::kPointerBytes) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  auto all = std::make_unique<const BlasHandle>(BlasHandle{made, static_cast<char*>(memory), workspace_size});
  return point(*all, stream) ? std::move(all) : nullptr;
}

// A change of the stream makes cuBLAS forget the workspace.
bool Blas::point(const BlasHandle& handle, cudaStream_t stream) const {
  return set_stream(handle.handle, stream) == cublas::kSuccess &&
         set_workspace(handle.handle, handle.workspace, handle.workspace_bytes) == cublas::kSuccess;
}

}  // namespace plugrad::cuda
