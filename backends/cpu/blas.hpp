// The BLAS inside this backend: one call computes one product on the calling thread.
#pragma once
#include <cstdint>

namespace plugrad::cpu {

#if defined(PLUGRAD_CPU_BLAS)
inline constexpr bool kHasBlas = true;
#else
inline constexpr bool kHasBlas = false;
#endif

// One operand, row-major; `transposed`: its columns are contiguous instead, and leading is from one of them to the next.
template <class T> struct BlasMatrix {
  const T* data;
  int64_t leading;  // elements; at least the length of what is contiguous
  bool transposed;
};

// c (m x n, row-major) = a b, plus c itself where accumulate. All sizes below 2^31. [any]
void blas_multiply(int64_t m, int64_t n, int64_t k, BlasMatrix<float> a, BlasMatrix<float> b, float* c, int64_t leading,
                   bool accumulate);
void blas_multiply(int64_t m, int64_t n, int64_t k, BlasMatrix<double> a, BlasMatrix<double> b, double* c, int64_t leading,
                   bool accumulate);

}  // namespace plugrad::cpu
