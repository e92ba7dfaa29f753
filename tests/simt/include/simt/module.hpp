// Kernels that are compiled at run time, as NVRTC does: a shared object with a function simt_kernel_NAME for each kernel,
// which gives what the emulator needs to run it. tests/nvrtc writes this around a source.
#pragma once
#include <simt/launch.hpp>

namespace simt {

// The indices of the GPU thread that runs now. The shared object has variables of its own for them.
struct Indices {
  const uint3 *thread, *block;
  const dim3 *block_size, *grid;
};

// Fills in everything of a kernel but the sizes of its launch. `arguments` are pointers to the kernel's arguments.
using MakeKernel = void (*)(Kernel* kernel, void** arguments, const Indices& indices);

}  // namespace simt
