// Copies a test's values to device memory and back.
#pragma once
#include <cuda_runtime.h>

#include <gtest/gtest.h>

#include <vector>

namespace simt::test {

template <class T> class Buffer {
 public:
  explicit Buffer(size_t n) : n_(n) { EXPECT_EQ(cudaMalloc(&data_, n * sizeof(T)), cudaSuccess); }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), n_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> all(n_);
    EXPECT_EQ(cudaMemcpy(all.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return all;
  }

 private:
  size_t n_;
  T* data_ = nullptr;
};

template <class T> std::vector<T> counted(size_t n, double first = 0, double step = 1) {
  std::vector<T> all(n);
  for (size_t i = 0; i < n; ++i) all[i] = static_cast<T>(first + step * static_cast<double>(i));
  return all;
}

}  // namespace simt::test
