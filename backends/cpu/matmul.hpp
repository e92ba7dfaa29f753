// Batched matrix products in any layout: this brings the operands into a shape that a product of ours or the BLAS takes.
#pragma once
#include <backends/cpu/blas.hpp>
#include <backends/cpu/operand.hpp>

namespace plugrad::cpu {

// Multiplications up to which a product of our own is faster than calling the BLAS.
inline constexpr int64_t kOwnWork = kHasBlas ? 32 * 32 * 32 : INT64_MAX;

template <class T> struct Matrix {
  T* data;
  int64_t row, column;  // elements from one row, and from one column, to the next
};

// c = a b, plus c itself where accumulate: m x k times k x n, columns of b and c contiguous. On the calling thread.
template <class T> using Multiply = void (*)(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b,
                                             Matrix<T> c, bool accumulate);

template <class T> void run_matmul(const Call& call, Multiply<T> multiply);
template <class T> uint64_t matmul_workspace(const Call& call);

}  // namespace plugrad::cpu
