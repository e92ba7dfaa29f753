// Replaces cuBLAS on the emulator: implements the functions that the CUDA backend opens. They check every argument and then
// multiply with simple loops. A wrong argument fails the stream as a kernel's fault does, so that no test can pass because
// the fallback kernel ran.
#include <plugrad/sdk/halves.hpp>
#include <tests/cublas/checking_cublas.hpp>

#include <simt/library.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace plugrad::cuda::checking {
namespace {

constexpr size_t kWorkspaceAlignment = 256;

struct Context {
  cudaStream_t stream = nullptr;
  bool has_workspace = false;
  int math_mode = 0;
};

// A call of one of the functions.
struct Gemm {
  const char* function;
  Context context;  // at the time of the call: the handle may get another stream before the work runs
  int transpose_a, transpose_b, m, n, k;
  const void *alpha, *beta;
  int type_a, lda, type_b, ldb, type_c, ldc, compute, algorithm, batches;

  bool wide() const { return compute == cublas::kCompute64; }
  double factor(const void* at) const {
    return wide() ? *static_cast<const double*>(at) : static_cast<double>(*static_cast<const float*>(at));
  }
};

// A call with copies of the scalars, which the caller owns and may change after the call.
struct Product {
  Gemm call;
  double alpha, beta;
};

Calls calls;

std::string text(const Gemm& g, const std::string& what) {
  return std::string(g.function) + " (" + std::to_string(g.m) + " x " + std::to_string(g.k) + " times " +
         std::to_string(g.k) + " x " + std::to_string(g.n) + ", batches " + std::to_string(g.batches) + "): " + what;
}

size_t size_of(int type) {
  if (type == cublas::kFloat64) return 8;
  if (type == cublas::kFloat32) return 4;
  return type == cublas::kBFloat16 || type == cublas::kFloat16 ? 2 : 0;
}

std::optional<std::string> why_types(const Gemm& g) {
  if (!size_of(g.type_a) || g.type_a != g.type_b || g.type_a != g.type_c) return "the types differ, or are none of ours";
  const bool fits = g.type_a == cublas::kFloat64   ? g.compute == cublas::kCompute64
                    : g.type_a == cublas::kFloat32 ? g.compute == cublas::kCompute32 || g.compute == cublas::kCompute32Tf32
                                                   : g.compute == cublas::kCompute32;
  if (size_of(g.type_a) == 2 && !(g.context.math_mode & cublas::kRoundOnce)) return "the math mode allows sums of halves";
  if (!fits) return "compute type " + std::to_string(g.compute) + " is not for data type " + std::to_string(g.type_a);
  return {};
}

std::optional<std::string> why_not(const Gemm& g) {
  if (!g.context.has_workspace) return "the handle has no workspace";
  if (g.m < 1 || g.n < 1 || g.k < 0 || g.batches < 1) return "a size is out of range";
  for (const int transpose : {g.transpose_a, g.transpose_b})
    if (transpose != cublas::kNoTranspose && transpose != cublas::kTranspose) return "an unknown transpose";
  if (g.lda < std::max(1, g.transpose_a ? g.k : g.m)) return "lda is less than the rows of a as it is stored";
  if (g.ldb < std::max(1, g.transpose_b ? g.n : g.k)) return "ldb is less than the rows of b as it is stored";
  if (g.ldc < g.m) return "ldc is less than the rows of c";
  if (g.algorithm != cublas::kDefaultAlgorithm) return "an unknown algorithm";
  return why_types(g);
}

size_t bytes_of(int rows, int columns, int leading, int type) {
  if (!rows || !columns) return 0;
  return (static_cast<size_t>(columns - 1) * static_cast<size_t>(leading) + static_cast<size_t>(rows)) * size_of(type);
}

// Fails unless the matrix is aligned and inside one allocation.
void demand_matrix(const Gemm& g, const char* name, const void* base, size_t bytes) {
  const simt::Library& library = simt::library_of(g.context.stream);
  if (reinterpret_cast<uintptr_t>(base) % size_of(g.type_a))
    library.fail(text(g, std::string(name) + " is not aligned for its type"));
  if (!bytes || library.covers(g.context.stream, base, bytes)) return;
  const char* const end = static_cast<const char*>(base) + bytes - 1;
  const bool is_start = !library.covers(g.context.stream, base, 1);
  library.fail(text(g, std::string(name) + " touches " +
                           library.describe(g.context.stream, is_start ? static_cast<const char*>(base) : end)));
}

// Rounds to ten bits of mantissa, as tensor cores round their inputs; the largest numbers stay finite.
double tf32(double x) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  const auto rounded = std::bit_cast<float>((bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu);
  return std::isfinite(rounded) ? static_cast<double>(rounded) : x;
}

double load(const char* base, size_t i, const Gemm& g) {
  if (g.type_a == cublas::kFloat64) return reinterpret_cast<const double*>(base)[i];
  if (g.type_a == cublas::kBFloat16)
    return static_cast<double>(static_cast<float>(reinterpret_cast<const BFloat16*>(base)[i]));
  if (g.type_a == cublas::kFloat16)
    return static_cast<double>(static_cast<float>(reinterpret_cast<const Float16*>(base)[i]));
  const double x = static_cast<double>(reinterpret_cast<const float*>(base)[i]);
  return g.compute == cublas::kCompute32Tf32 && std::isfinite(x) ? tf32(x) : x;
}

template <class T> void store(T& c, const Product& p, double sum) {
  const double old = p.beta == 0 ? 0 : p.beta * static_cast<double>(c);  // beta 0: c is not read
  c = static_cast<T>(p.alpha * sum + old);
}
// Halves are rounded from the sum in f32.
template <class T> void store_half(T& c, const Product& p, double sum) {
  float wide = p.beta == 0 ? 0 : static_cast<float>(c);
  store(wide, p, sum);
  c = static_cast<T>(wide);
}
void store(char* base, size_t i, const Product& p, double sum) {
  switch (p.call.type_c) {
    case cublas::kFloat64: return store(reinterpret_cast<double*>(base)[i], p, sum);
    case cublas::kFloat32: return store(reinterpret_cast<float*>(base)[i], p, sum);
    case cublas::kBFloat16: return store_half(reinterpret_cast<BFloat16*>(base)[i], p, sum);
    default: return store_half(reinterpret_cast<Float16*>(base)[i], p, sum);
  }
}

// Copies op(a) row by row or op(b) column by column, so that the loops below are simple.
std::vector<double> lines(const Gemm& g, const char* base, int count, int leading, bool is_contiguous) {
  std::vector<double> all(static_cast<size_t>(count) * static_cast<size_t>(g.k));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    for (size_t l = 0; l < static_cast<size_t>(g.k); ++l) {
      const size_t step = static_cast<size_t>(leading);
      all[i * static_cast<size_t>(g.k) + l] = load(base, is_contiguous ? i * step + l : l * step + i, g);
    }
  return all;
}

void multiply(const Product& p, const char* a, const char* b, char* c) {
  const Gemm& g = p.call;
  demand_matrix(g, "a", a, g.transpose_a ? bytes_of(g.k, g.m, g.lda, g.type_a) : bytes_of(g.m, g.k, g.lda, g.type_a));
  demand_matrix(g, "b", b, g.transpose_b ? bytes_of(g.n, g.k, g.ldb, g.type_b) : bytes_of(g.k, g.n, g.ldb, g.type_b));
  demand_matrix(g, "c", c, bytes_of(g.m, g.n, g.ldc, g.type_c));
  const std::vector<double> left = lines(g, a, g.m, g.lda, g.transpose_a), right = lines(g, b, g.n, g.ldb, !g.transpose_b);
  const size_t k = static_cast<size_t>(g.k);
  for (size_t j = 0; j < static_cast<size_t>(g.n); ++j)
    for (size_t i = 0; i < static_cast<size_t>(g.m); ++i) {
      double sum = 0;
      for (size_t l = 0; l < k; ++l) sum += left[i * k + l] * right[j * k + l];
      store(c, i + j * static_cast<size_t>(g.ldc), p, sum);
    }
}

// Checks the arguments, then queues `work`, which receives the product.
template <class Work> cublas::Status submit(const Gemm& g, Work work) {
  if (!g.context.stream) return 1;  // not initialised
  const simt::Library& library = simt::library_of(g.context.stream);
  const std::optional<std::string> why = why_not(g);
  if (why) {
    library.submit(g.context.stream, [&library, message = text(g, *why)] { library.fail(message); });
    return cublas::kSuccess;
  }
  const Product product{g, g.factor(g.alpha), g.factor(g.beta)};
  library.submit(g.context.stream, [product, work] { work(product); });
  return cublas::kSuccess;
}

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
  ++calls.handles;
  return cublas::kSuccess;
}

cublas::Status cublasDestroy_v2(cublas::Handle handle) {
  delete static_cast<Context*>(handle);
  --calls.handles;
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
  ++calls.single;
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
  ++calls.strided;
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
  ++calls.by_pointers;
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

const Calls* plugrad_checking_cublas_calls() { return &calls; }

}  // extern "C"

static_assert(std::is_same_v<decltype(&cublasCreate_v2), cublas::Create>);
static_assert(std::is_same_v<decltype(&cublasDestroy_v2), cublas::Destroy>);
static_assert(std::is_same_v<decltype(&cublasSetMathMode), cublas::SetMathMode>);
static_assert(std::is_same_v<decltype(&cublasSetStream_v2), cublas::SetStream>);
static_assert(std::is_same_v<decltype(&cublasSetWorkspace_v2), cublas::SetWorkspace>);
static_assert(std::is_same_v<decltype(&cublasGemmEx), cublas::Gemm>);
static_assert(std::is_same_v<decltype(&cublasGemmStridedBatchedEx), cublas::GemmStridedBatched>);
static_assert(std::is_same_v<decltype(&cublasGemmBatchedEx), cublas::GemmBatched>);
