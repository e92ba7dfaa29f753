// A batch of matrix products, as both cuBLAS and our own kernel (product.cu) take it.
#pragma once
#include <backends/cuda/submission.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {

struct Matrix {
  char* base;
  int64_t row, column;  // strides in elements, between rows and between columns
};

struct Product {
  int64_t m, n, k;
  Matrix a, b, c;
  Walk<3> batch;  // of c, a, b
  bool adds;
  bool is_transposed = false;  // computes the transposed output

  explicit Product(const Call& call);

 private:
  void transpose();
  void fold();
};

// Multiplies with our own kernel, for any layout.
template <class T> void multiply_by_tiles(const Submission& submission, const Product& product);

}  // namespace plugrad::cuda
