// Replaces cuBLAS on the emulator: implements the functions that the CUDA backend opens. They check every argument and then
// multiply with simple loops. A wrong argument fails the stream as a kernel's fault does, so that no test can pass because
// the fallback kernel ran.
#include <tests/cublas/checked_gemm.hpp>
#include <tests/cublas/checking_cublas.hpp>

#include <set>
#include <string>
#include <type_traits>

namespace plugrad::cuda::checking {

Calls& calls_so_far() {
  static Calls calls;
  return calls;
}

namespace {

constexpr size_t kWorkspaceAlignment = 256;

Context* context_of(cublas::Handle handle) { return static_cast<Context*>(handle); }

void run_batched(const Product& p, const void* const* a, const void* const* b, void* const* c) {
  const Gemm& g = p.call;
  const simt::Library& library = simt::library_of(g.context.stream);
  const size_t bytes = static_cast<size_t>(g.batches) * sizeof(void*);
  for (const void* array : {static_cast<const void*>(a), static_cast<const void*>(b), static_cast<const void*>(c)})
    if (reinterpret_cast<uintptr_t>(array) % sizeof(void*) || !library.covers(g.context.stream, array, bytes))
      library.fail(text(g, "an array of pointers touches " + library.describe(g.context.stream, array)));
  if (std::set<const void*>(c, c + g.batches).size() != static_cast<size_t>(g.batches))
    library.fail(text(g, "two matrices of c are one"));
  for (int i = 0; i < g.batches; ++i)
    multiply(p, static_cast<const char*>(a[i]), static_cast<const char*>(b[i]), static_cast<char*>(c[i]));
}

}  // namespace
}  // namespace plugrad::cuda::checking

using namespace plugrad::cuda;
using namespace plugrad::cuda::checking;

extern "C" {

cublas::Status cublasCreate_v2(cublas::Handle* handle) {
  *handle = new Context;
  ++calls_so_far().handles;
  return cublas::kSuccess;
}

cublas::Status cublasDestroy_v2(cublas::Handle handle) {
  delete static_cast<Context*>(handle);
  --calls_so_far().handles;
  return cublas::kSuccess;
}

cublas::Status cublasSetMathMode(cublas::Handle handle, int mode) {
  context_of(handle)->math_mode = mode;
  return cublas::kSuccess;
}

// As in cuBLAS, setting a stream resets the workspace to the library's own.
cublas::Status cublasSetStream_v2(cublas::Handle handle, cudaStream_t stream) {
  Context& context = *context_of(handle);
  context.stream = stream;
  context.has_workspace = false;
  return cublas::kSuccess;
}

cublas::Status cublasSetWorkspace_v2(cublas::Handle handle, void* workspace, size_t bytes) {
  Context& context = *context_of(handle);
  if (!context.stream || reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment) return 7;  // invalid value
  context.has_workspace = simt::library_of(context.stream).covers(context.stream, workspace, bytes);
  return context.has_workspace ? cublas::kSuccess : 7;
}

cublas::Status cublasGemmEx(cublas::Handle handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha,
                            const void* a, int type_a, int lda, const void* b, int type_b, int ldb, const void* beta,
                            void* c, int type_c, int ldc, int compute, int algorithm) {
  ++calls_so_far().single;
  const Gemm g{"cublasGemmEx",
               *context_of(handle),
               transpose_a,
               transpose_b,
               m,
               n,
               k,
               alpha,
               beta,
               type_a,
               lda,
               type_b,
               ldb,
               type_c,
               ldc,
               compute,
               algorithm,
               1};
  return submit(g, [=](const Product& p) {
    multiply(p, static_cast<const char*>(a), static_cast<const char*>(b), static_cast<char*>(c));
  });
}

cublas::Status cublasGemmStridedBatchedEx(cublas::Handle handle, int transpose_a, int transpose_b, int m, int n, int k,
                                          const void* alpha, const void* a, int type_a, int lda, long long stride_a,
                                          const void* b, int type_b, int ldb, long long stride_b, const void* beta, void* c,
                                          int type_c, int ldc, long long stride_c, int batches, int compute, int algorithm) {
  ++calls_so_far().strided;
  const Gemm g{"cublasGemmStridedBatchedEx",
               *context_of(handle),
               transpose_a,
               transpose_b,
               m,
               n,
               k,
               alpha,
               beta,
               type_a,
               lda,
               type_b,
               ldb,
               type_c,
               ldc,
               compute,
               algorithm,
               batches};
  return submit(g, [=](const Product& p) {
    const long long size = static_cast<long long>(size_of(type_a));
    if (batches > 1 && stride_c <= 0) simt::library_of(g.context.stream).fail(text(g, "two matrices of c are one"));
    for (long long i = 0; i < batches; ++i)
      multiply(p, static_cast<const char*>(a) + i * stride_a * size, static_cast<const char*>(b) + i * stride_b * size,
               static_cast<char*>(c) + i * stride_c * size);
  });
}

cublas::Status cublasGemmBatchedEx(cublas::Handle handle, int transpose_a, int transpose_b, int m, int n, int k,
                                   const void* alpha, const void* const* a, int type_a, int lda, const void* const* b,
                                   int type_b, int ldb, const void* beta, void* const* c, int type_c, int ldc, int batches,
                                   int compute, int algorithm) {
  ++calls_so_far().by_pointers;
  const Gemm g{"cublasGemmBatchedEx",
               *context_of(handle),
               transpose_a,
               transpose_b,
               m,
               n,
               k,
               alpha,
               beta,
               type_a,
               lda,
               type_b,
               ldb,
               type_c,
               ldc,
               compute,
               algorithm,
               batches};
  return submit(g, [=](const Product& p) { run_batched(p, a, b, c); });
}

Calls* plugrad_checking_cublas_calls() { return &calls_so_far(); }

}  // extern "C"

static_assert(std::is_same_v<decltype(&cublasCreate_v2), cublas::Create>);
static_assert(std::is_same_v<decltype(&cublasDestroy_v2), cublas::Destroy>);
static_assert(std::is_same_v<decltype(&cublasSetMathMode), cublas::SetMathMode>);
static_assert(std::is_same_v<decltype(&cublasSetStream_v2), cublas::SetStream>);
static_assert(std::is_same_v<decltype(&cublasSetWorkspace_v2), cublas::SetWorkspace>);
static_assert(std::is_same_v<decltype(&cublasGemmEx), cublas::Gemm>);
static_assert(std::is_same_v<decltype(&cublasGemmStridedBatchedEx), cublas::GemmStridedBatched>);
static_assert(std::is_same_v<decltype(&cublasGemmBatchedEx), cublas::GemmBatched>);
