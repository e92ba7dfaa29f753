// The instruction sets of kernels, as far as this processor and its operating system support them.
#pragma once

namespace plugrad::cpu {

struct SupportedSets {
  bool sse4 = false, avx2 = false, avx512 = false;
};

inline SupportedSets supported_sets() {
  SupportedSets sets;
#if defined(__x86_64__)
  __builtin_cpu_init();
  sets.sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  sets.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  sets.avx512 = sets.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#endif
  return sets;
}

}  // namespace plugrad::cpu
