// A part of a step, such as an optimiser: the host computes the numbers of its ops anew for each step.
#pragma once
#include <cstdint>
#include <functional>

namespace plugrad::observe {

struct Part {
  std::function<uint64_t()> advance;  // counts a step; returns a new value if its ops get new numbers
  std::function<void()> repeat;       // calls its ops; they then only show their numbers
  std::function<void()> undo;         // takes the last advance() back; later parts are undone first
};

}  // namespace plugrad::observe
