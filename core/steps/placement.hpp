// Where blocks of memory lie that are not all in use at the same time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace plugrad::steps {

// The next multiple of an alignment, which is a power of two.
inline uint64_t rounded(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

// A block of memory that the calls from `first` to `last` use.
struct Interval {
  uint64_t bytes;
  uint32_t first, last;
  // Where place() puts it: in the arena, or in the room of that index.
  uint64_t offset = 0;
  std::optional<size_t> room = std::nullopt;
};

// Places blocks in rooms of given sizes, or in an arena whose size it returns, so that no two blocks that are in use at the
// same time overlap. fixed: blocks in rooms, which stay where they are.
//
// Places the largest blocks first, each as low as it fits: what TensorFlow Lite's greedy planner by size does (Pisarchyk and
// Lee, "Efficient memory management for deep neural net inference", 2020). Then it searches for a better order, by moving a
// block that ends at the arena's end before one of those that keep it there, as the planners of microcontrollers do (hill
// climbing). The same blocks always get the same places.
uint64_t place(std::vector<Interval>& blocks, uint64_t alignment, const std::vector<uint64_t>& rooms = {},
               const std::vector<Interval>& fixed = {});

}  // namespace plugrad::steps
