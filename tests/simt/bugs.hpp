// The fixture shared by the tests of planted bugs.
#pragma once
#include <simt/control.hpp>
#include <tests/simt/memory_of.hpp>

#include <initializer_list>

namespace simt::test {

// The thread sanitizer cannot follow a thread that leaves a signal handler for another stack, as a failed kernel does.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kHandlersReturn = true;
#else
inline constexpr bool kHandlersReturn = false;
#endif
class Bugs : public testing::Test {
 protected:
  void SetUp() override {
    clear_fault();
    EXPECT_EQ(cudaMalloc(&out_, 64 * sizeof(float)), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&in_, 64 * sizeof(float)), cudaSuccess);
    const std::vector<float> values = counted<float>(64);
    EXPECT_EQ(cudaMemcpy(in_, values.data(), 64 * sizeof(float), cudaMemcpyHostToDevice), cudaSuccess);
  }
  void TearDown() override { cudaDeviceReset(); }
  // Expects that the device is lost with this error and that the message contains all parts.
  void expect_fault(cudaError_t error, std::initializer_list<const char*> parts) {
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), error) << "it is sticky";
    void* more = nullptr;
    EXPECT_EQ(cudaMalloc(&more, 4), error);
    for (const char* part : parts) EXPECT_NE(last_fault().find(part), std::string::npos) << part << " in: " << last_fault();
  }

  float *out_ = nullptr, *in_ = nullptr;
};

// True if kernels are compiled with the checks that bounds.cpp reports.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kChecked = false;
#else
inline constexpr bool kChecked = true;
#endif

}  // namespace simt::test
