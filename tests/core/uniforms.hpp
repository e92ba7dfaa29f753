// The uniform numbers of a seed, from the tests' own Philox.
#pragma once
#include <tests/core/expect.hpp>

#include <array>
#include <cstdint>

namespace plugrad::test {

// Philox 4x32-10, from the paper: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11.
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xD2511F53) * x[0], b = uint64_t(0xCD9E8D57) * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return x;
}

inline double uniform(DType dtype, uint64_t seed, uint64_t offset, uint64_t i) {
  if (dtype == DType::f32) return static_cast<double>(philox(seed, offset + i / 4)[i % 4] >> 8) * 0x1p-24;
  const auto words = philox(seed, offset + i / 2);
  const uint64_t bits = static_cast<uint64_t>(words[2 * (i % 2) + 1]) << 32 | words[2 * (i % 2)];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

inline std::vector<double> uniforms(DType dtype, uint64_t seed, uint64_t offset, int64_t n) {
  std::vector<double> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(uniform(dtype, seed, offset, static_cast<uint64_t>(i)));
  return all;
}

}  // namespace plugrad::test
