// The counts that a test can query from the replacement for cuBLAS.
#pragma once
#include <backends/cuda/blas.hpp>

#include <atomic>

namespace plugrad::cuda::checking {

// The number of calls of each function since the library was loaded, and of the handles that live. A test sets `refusal`.
struct Calls {
  std::atomic<int> single{0}, strided{0}, by_pointers{0}, with_bias{0}, handles{0};
  enum Refusal : int { none, no_algorithm, no_product };
  std::atomic<int> refusal{none};  // of cublasLt
};
using CallsFunction = Calls* (*)();  // plugrad_checking_cublas_calls
Calls& calls_so_far();               // within the library

}  // namespace plugrad::cuda::checking
