// For tests of device failures through the core. The backend is linked in, so that the test can inject failures into the
// emulator. Each case runs in its own process.
#pragma once
#include <plugrad/backends/cuda.hpp>
#include <plugrad/plugrad.hpp>
#include <simt/control.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace plugrad::test {

inline constexpr int64_t kMebi = 1 << 18;  // f32 elements in 1 MiB

// Prints the error that f threw, for the test to match; then ends the process normally.
[[noreturn]] inline void report(const char* settings, const std::function<void()>& f) {
  setenv("PLUGRAD_SIMT", settings, 1);
  const PluginRecord record = add_backend(plugrad_cuda_backend(host()));
  std::fprintf(stderr, "%u devices, %s\n", record.devices, record.reason.c_str());
  try {
    f();
    std::fprintf(stderr, "all went well\n");
  } catch (const Error& error) {
    std::fprintf(stderr, "code %d: %s\n", static_cast<int>(error.code()), error.what());
  }
  std::exit(0);
}
inline void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::_Exit(1);
}
inline Tensor some(int64_t n, float value = 1) { return full({n}, value, DType::f32, Device("cuda-emu")); }
inline float total(const Tensor& x) { return sum(x).item<float>(); }

class FaultsDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
  void TearDown() override { unsetenv("PLUGRAD_SYNC"); }
  void expect(const char* settings, const std::function<void()>& f, const char* said) {
    EXPECT_EXIT(report(settings, f), testing::ExitedWithCode(0), said);
  }
};

}  // namespace plugrad::test
