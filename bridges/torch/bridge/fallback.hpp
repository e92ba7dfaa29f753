// Ops that run on the CPU instead of a device, counted by name.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plugrad_torch {

struct Counts {
  std::vector<std::pair<std::string, int64_t>> fallbacks;  // an op's name and its runs on the CPU
  int64_t kernels;                                         // calls that ran on a device
};
Counts counts();
void reset_counts();

// While it lives, an op of this thread without a kernel throws, whatever the policy: inside a recording, which the CPU's
// kernel could not be part of.
class WithoutFallback {
 public:
  explicit WithoutFallback(const char* where);
  ~WithoutFallback();
  WithoutFallback(const WithoutFallback&) = delete;
  WithoutFallback& operator=(const WithoutFallback&) = delete;

 private:
  const char* before_;
};

}  // namespace plugrad_torch
