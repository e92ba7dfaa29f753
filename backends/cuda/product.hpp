// A batch of matrix products, whoever computes them.
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

// By cuBLAS, or false where it is absent or cannot: nothing is submitted then.
bool multiply_by_blas(const Submission& submission, const Product& product, uint8_t dtype, bool tf32);

}  // namespace plugrad::cuda
