// cuBLAS, opened when the first matrix product is resolved and never linked: the plugin loads, and multiplies, without it.
// Its few functions and constants are declared here; a test holds them against cublas_v2.h where there is one.
#pragma once
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
inline constexpr int kFloat32 = 0, kFloat64 = 1, kBFloat16 = 14;             // cudaDataType
inline constexpr int kCompute32 = 68, kCompute64 = 70, kCompute32Tf32 = 77;  // cublasComputeType_t
inline constexpr int kDefaultAlgorithm = -1;
using Create = Status (*)(Handle*);
using SetStream = Status (*)(Handle, cudaStream_t);
using SetWorkspace = Status (*)(Handle, void*, size_t);
using Gemm = Status (*)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a,
                        int type_a, int lda, const void* b, int type_b, int ldb, const void* beta, void* c, int type_c,
                        int ldc, int compute, int algorithm);
using GemmStridedBatched = Status (*)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha,
                                      const void* a, int type_a, int lda, long long stride_a, const void* b, int type_b,
                                      int ldb, long long stride_b, const void* beta, void* c, int type_c, int ldc,
                                      long long stride_c, int batches, int compute, int algorithm);
// The matrices of a batch by arrays of pointers in device memory.
using GemmBatched = Status (*)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha,
                               const void* const* a, int type_a, int lda, const void* const* b, int type_b, int ldb,
                               const void* beta, void* const* c, int type_c, int ldc, int batches, int compute,
                               int algorithm);
}  // namespace cublas

// The files that may be cuBLAS, the preferred one first.
std::vector<std::string> cublas_candidates();

// cuBLAS for one stream, and the device memory that it needs there: nothing is allocated later.
struct BlasHandle {
  static constexpr int kPointers = 1024;  // matrices of each operand in one call by pointers
  static constexpr uint64_t kPointerBytes = 3 * kPointers * sizeof(void*);

  cublas::Handle handle;
  char* pointers;  // kPointerBytes of device memory
};

class Blas {
 public:
  // The library, or null where there is none; why then says where it was looked for, and what to do.
  static std::unique_ptr<const Blas> open(std::string& why);

  // Bytes of workspace that NVIDIA advises for the selected device.
  static uint64_t workspace_bytes();
  // A handle that works on one stream of the selected device. Null where cuBLAS or the device's memory refuses it.
  std::unique_ptr<const BlasHandle> handle(cudaStream_t stream) const;

  cublas::Create create = nullptr;
  cublas::SetStream set_stream = nullptr;
  cublas::SetWorkspace set_workspace = nullptr;
  cublas::Gemm gemm = nullptr;
  cublas::GemmStridedBatched gemm_strided_batched = nullptr;
  cublas::GemmBatched gemm_batched = nullptr;
};

}  // namespace plugrad::cuda
