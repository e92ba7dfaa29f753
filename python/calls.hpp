// The further names of parameters in calls, from functions.toml. generate.py defines these functions.
#pragma once
#include <span>

namespace plugrad::python {

// A further name, `theirs`, of a function's parameter `ours`. An empty function name means all functions.
struct CallName {
  const char *function, *theirs, *ours;
};
std::span<const CallName> call_names();

// Returns the names of the functions that draw random numbers and therefore take a Generator.
std::span<const char* const> drawing_functions();

}  // namespace plugrad::python
