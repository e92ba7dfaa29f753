// A batch of matrix products: what cuBLAS and our own kernel, in product.cu, have in common.
#pragma once
#include <backends/cuda/submission.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {

struct Matrix {
  char* base;
  int64_t row, column;  // elements from one row to the next, from one column to the next
};

struct Product {
  int64_t m, n, k;
  Matrix a, b, c;
  Walk<3> batch;  // of c, a, b
  bool adds;

  explicit Product(const Call& call);

 private:
  void transpose();
  void fold();
};

// Multiplies by our own kernel, in any layout.
template <class T> void multiply_by_tiles(const Submission& submission, const Product& product);

}  // namespace plugrad::cuda
