// Programs of the reference backend: each instruction is a call of its own kernel, over values in the workspace.
#pragma once
#include <plugrad/sdk/program.hpp>

#include <memory>

namespace plugrad::reference {

// A kernel that runs the program, or null if an instruction has no kernel.
std::unique_ptr<ProgramKernel> make_program(OpenDevice& device, const plugrad_program& program);

}  // namespace plugrad::reference
