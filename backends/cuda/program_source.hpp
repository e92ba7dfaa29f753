// A program (sdk/program.h) as CUDA C++: a function of one element of each operand, which map.hpp applies to all.
#pragma once
#include <plugrad/sdk/program.hpp>

#include <string>

namespace plugrad::cuda {

struct ProgramSource {
  std::string text;     // defines two kernels, which take a Grid; empty for a program that cannot be written
  int pack = 1;         // elements that the kernel "packs" reads and writes at once; the kernel "singles" takes one
  int packs_each = 1, singles_each = 1;  // packs or elements that a thread loads before it stores any
};

// Returns no text for a program that has other than elementwise ops, copies, fills, conversions and updates, or whose
// outputs repeat.
ProgramSource source_of(const plugrad_program& program);

}  // namespace plugrad::cuda
