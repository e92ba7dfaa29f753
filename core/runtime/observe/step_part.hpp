// A part of a step whose ops get numbers that the host computes anew for each step, such as an optimiser.
#pragma once
#include <cstdint>
#include <functional>

namespace plugrad::observe {

struct Part {
  std::function<uint64_t()> advance;  // counts one more step; returns another value if its ops get other numbers
  std::function<void()> repeat;       // calls its ops, which then only show their numbers
  std::function<void()> undo;         // takes the last advance() back
};

}  // namespace plugrad::observe
