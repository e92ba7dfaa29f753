// Kernels that are compiled at run time, as by NVRTC: a shared object with a function simt_kernel_NAME for each kernel,
// which describes the kernel to the emulator. tests/nvrtc adds these functions to a source.
#pragma once
#include <simt/intrinsics.hpp>
#include <simt/launch.hpp>

namespace simt {

// The emulator's state and functions for a shared object, which has its own variables and functions of the same names: the
// indices of the running GPU thread, and the functions of intrinsics.hpp.
struct Emulator {
  const uint3 *thread, *block;
  const dim3 *block_size, *grid;
  decltype(&barrier) barrier_of;
  decltype(&meet) meet_of;
  decltype(&lane) lane_of;
  decltype(&dynamic_shared) dynamic_shared_of;
  decltype(&note_atomic) note_atomic_of;
  decltype(&note_sum) note_sum_of;
  decltype(&fence) fence_of;
  decltype(&trap) trap_of;
};

// Sets all members of a kernel except the sizes of its launch. `arguments` are pointers to the kernel's arguments.
using MakeKernel = void (*)(Kernel* kernel, void** arguments, const Emulator& emulator);

}  // namespace simt
