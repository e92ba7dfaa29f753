// Prints Highway's name of the widest instruction set of the building machine, or nothing for the baseline.
#include <backends/cpu/supported_sets.hpp>

#include <cstdio>

int main() {
  const plugrad::cpu::SupportedSets here = plugrad::cpu::supported_sets();
  std::fputs(here.avx512 ? "HWY_AVX3" : here.avx2 ? "HWY_AVX2" : here.sse4 ? "HWY_SSE4" : "", stdout);
}
