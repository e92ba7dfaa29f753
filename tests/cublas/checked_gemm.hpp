// Checks the arguments of a product, and multiplies with simple loops on the emulator: shared by the replacements of cuBLAS
// and cublasLt.
#pragma once
#include <backends/cuda/blas.hpp>

#include <simt/library.hpp>

#include <cstddef>
#include <functional>
#include <string>

namespace plugrad::cuda::checking {

struct Context {
  cudaStream_t stream = nullptr;
  bool has_workspace = false;
  int math_mode = 0;
};

// A call of one of the functions. Matrices are column-major: c (m, n) = alpha op(a) op(b) + beta c.
struct Gemm {
  const char* function;
  Context context;  // at the time of the call: the handle may get another stream before the work runs
  int transpose_a, transpose_b, m, n, k;
  const void *alpha, *beta;
  int type_a, lda, type_b, ldb, type_c, ldc, compute, algorithm, batches;
  const void* bias = nullptr;  // m elements of c's type, added to each column of c

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

std::string text(const Gemm& g, const std::string& what);
size_t size_of(int type);  // of an element in bytes; 0 for types that the backend does not use
// Multiplies one pair of matrices. The stream fails if a matrix is not inside one allocation.
void multiply(const Product& p, const char* a, const char* b, char* c);
// Checks the arguments, then queues `work`, which receives the product. The stream fails if an argument is wrong.
cublas::Status submit(const Gemm& g, std::function<void(const Product&)> work);

}  // namespace plugrad::cuda::checking
