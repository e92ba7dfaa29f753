// What this backend asks the operating system and the processor.
#pragma once
#include <cstdint>
#include <string>

namespace plugrad::cpu {

// How many threads this process may keep busy: its affinity mask, within the quota of its control group.
int usable_threads();
// Bytes of memory installed, and free for new allocations; 0 where unknown.
uint64_t installed_memory();
uint64_t available_memory();
// The processor's name as it gives it.
std::string processor_name();

// How the calling thread treats denormals and rounds: the control bits of its floating-point unit.
uint32_t float_mode();
void set_float_mode(uint32_t mode);
// `mode` with denormal results and operands taken as 0.
uint32_t flushing(uint32_t mode);

// Tells the processor that this is a loop that waits.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace plugrad::cpu
