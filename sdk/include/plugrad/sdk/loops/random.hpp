// Plain loops in host memory: UNIFORM and NORMAL.
#pragma once
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/rows.hpp>

#include <cmath>
#include <numbers>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {
namespace of_random {

using Words = std::array<uint32_t, 4>;

// Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
inline Words philox(uint64_t key, uint64_t counter) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  Words c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53) * c[0], p1 = uint64_t(0xCD9E8D57) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1,
         static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

struct Generator {
  uint64_t seed, offset;

  // Element i of UNIFORM; the same bits on every device.
  template <class T> T uniform(uint64_t i) const {
    if constexpr (std::is_same_v<T, float>) {
      return static_cast<float>(philox(seed, offset + i / 4)[i % 4] >> 8) * 0x1p-24f;
    } else {
      const Words words = philox(seed, offset + i / 2);
      const uint64_t bits = static_cast<uint64_t>(words[2 * (i % 2) + 1]) << 32 | words[2 * (i % 2)];
      return static_cast<double>(bits >> 11) * 0x1p-53;
    }
  }
  // Element i of NORMAL by the Box-Muller transform: elements 2 j and 2 j + 1 share their two uniforms.
  template <class T> T normal(uint64_t i) const {
    const double u = uniform<T>(i & ~uint64_t(1)), v = uniform<T>(i | 1);
    const double radius = std::sqrt(-2 * std::log1p(-u)), angle = 2 * std::numbers::pi * v;
    return static_cast<T>(radius * (i % 2 ? std::sin(angle) : std::cos(angle)));
  }
};

template <class T, T (Generator::*Draw)(uint64_t) const> void random(const Call& call) {
  const Elements<int64_t> seed(call.in(0)), offset(call.in(1));
  const Generator generator{static_cast<uint64_t>(*seed.first), static_cast<uint64_t>(*offset.first)};
  uint64_t i = 0;
  for_each(call.out(), [&](T& out) { out = (generator.*Draw)(i++); }, Elements<T>(call.out()));
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<random<T, &Generator::uniform<T>>>(PLUGRAD_OP_UNIFORM, element_dtype<T>)...},
              std::array{kernel<random<T, &Generator::normal<T>>>(PLUGRAD_OP_NORMAL, element_dtype<T>)...});
}
inline constexpr auto kRows = rows(kComputable);

}  // namespace of_random

inline constexpr const auto& kRandomRows = of_random::kRows;

}  // namespace plugrad::loops
#pragma GCC visibility pop
