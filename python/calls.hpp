// The names that calls may use, from functions.toml. generate.py defines these functions.
#pragma once
#include <span>

namespace plugrad::python {

// A further name of a parameter of a function. Without the function's name: of all functions.
struct CallName {
  const char *function, *theirs, *ours;
};
std::span<const CallName> call_names();

// The functions that draw random numbers and so take a Generator.
std::span<const char* const> drawing_functions();

}  // namespace plugrad::python
