// Queries to the operating system and the processor.
#pragma once
#include <cstdint>
#include <string>

namespace plugrad::cpu {

// Returns how many threads this process can keep busy: the size of its affinity mask, limited by its control group's quota.
int usable_threads();
// Return the bytes of memory installed, and available for new allocations; 0 if unknown.
uint64_t installed_memory();
uint64_t available_memory();
// Returns the processor's name.
std::string processor_name();

// Whether the processor multiplies pairs of bf16 in vectors of 512 bits, and whether it multiplies tiles of bf16 and the
// operating system lets this process do so.
bool multiplies_bf16_pairs();
bool multiplies_bf16_tiles();

// The control bits of the calling thread's floating-point unit, for rounding and the treatment of denormals.
uint32_t float_mode();
void set_float_mode(uint32_t mode);
// Returns `mode` changed so that denormal results and operands are treated as 0.
uint32_t flushing(uint32_t mode);

// Tells the processor that the thread spins.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace plugrad::cpu
