// cuBLAS is opened when the first matrix product is resolved, and never linked: the plugin also loads and multiplies without
// it. The functions and constants in use are declared here; a test compares them with cublas_v2.h where the header is
// installed.
#pragma once
#include <backends/cuda/blas_lt.hpp>

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plugrad::cuda {

namespace cublas {
using Status = int;
using Handle = void*;
inline constexpr int kSuccess = 0, kNoTranspose = 0, kTranspose = 1;
inline constexpr int kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBFloat16 = 14;  // cudaDataType
inline constexpr int kCompute32 = 68, kCompute64 = 70, kCompute32Tf32 = 77;     // cublasComputeType_t
inline constexpr int kDefaultAlgorithm = -1;
// cublasMath_t: every partial sum has the type of the computation. By default cuBLAS may add partial sums of halves as
// halves, which rounds a result more than once.
inline constexpr int kRoundOnce = 16;
using Create = Status (*)(Handle*);
using Destroy = Status (*)(Handle);
using SetMathMode = Status (*)(Handle, int mode);
using SetStream = Status (*)(Handle, cudaStream_t);
using SetWorkspace = Status (*)(Handle, void*, size_t);
using Gemm = Status (*)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a,
                        int type_a, int lda, const void* b, int type_b, int ldb, const void* beta, void* c, int type_c,
                        int ldc, int compute, int algorithm);
using GemmStridedBatched = Status (*)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha,
                                      const void* a, int type_a, int lda, long long stride_a, const void* b, int type_b,
                                      int ldb, long long stride_b, const void* beta, void* c, int type_c, int ldc,
                                      long long stride_c, int batches, int compute, int algorithm);
// Takes the matrices of a batch as arrays of pointers in device memory.
using GemmBatched = Status (*)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha,
                               const void* const* a, int type_a, int lda, const void* const* b, int type_b, int ldb,
                               const void* beta, void* const* c, int type_c, int ldc, int batches, int compute,
                               int algorithm);
}  // namespace cublas

// Returns the candidate files for cuBLAS, the preferred file first.
std::vector<std::string> cublas_candidates();

// A cuBLAS handle for one stream, with all of its device memory: nothing is allocated later.
struct BlasHandle {
  static constexpr int kPointers = 1024;  // matrices of each operand in a pointer-batched call
  static constexpr uint64_t kPointerBytes = 3 * kPointers * sizeof(void*);

  cublas::Handle handle;
  char* workspace;  // workspace_bytes of device memory
  uint64_t workspace_bytes;
  char* pointers() const { return workspace + workspace_bytes; }  // kPointerBytes of device memory
};

class Blas {
 public:
  // Returns the library, or null if none is found; `why` then lists the places searched and the remedy.
  static std::unique_ptr<const Blas> open(std::string& why);

  // Returns NVIDIA's recommended workspace size for the selected device, in bytes.
  static uint64_t workspace_bytes();
  // Returns a handle for one stream of the selected device. If cuBLAS fails or device memory is exhausted, returns null and
  // leaves nothing allocated.
  std::unique_ptr<const BlasHandle> handle(cudaStream_t stream) const;
  // Lets the handle submit to another stream. Returns false if cuBLAS fails.
  bool point(const BlasHandle& handle, cudaStream_t stream) const;

  cublas::Create create = nullptr;
  cublas::Destroy destroy = nullptr;
  cublas::SetMathMode set_math_mode = nullptr;
  cublas::SetStream set_stream = nullptr;
  cublas::SetWorkspace set_workspace = nullptr;
  cublas::Gemm gemm = nullptr;
  cublas::GemmStridedBatched gemm_strided_batched = nullptr;
  cublas::GemmBatched gemm_batched = nullptr;
  std::unique_ptr<const BlasLt> lt;  // null if the library lacks it
};

}  // namespace plugrad::cuda
