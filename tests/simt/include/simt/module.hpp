// Kernels that are compiled at run time, as NVRTC does: a shared object with a function simt_kernel_NAME for each kernel,
// which gives what the emulator needs to run it. tests/nvrtc writes this around a source.
#pragma once
#include <simt/intrinsics.hpp>
#include <simt/launch.hpp>

namespace simt {

// What the emulator gives a shared object, which has variables and functions of its own with these names: the indices of
// the GPU thread that runs now, and the functions of intrinsics.hpp.
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

// Fills in everything of a kernel but the sizes of its launch. `arguments` are pointers to the kernel's arguments.
using MakeKernel = void (*)(Kernel* kernel, void** arguments, const Emulator& emulator);

}  // namespace simt
