// Places blocks of memory. Blocks in use at different times may overlap.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace plugrad::steps {

// Rounds bytes up to a multiple of the alignment, a power of two.
inline uint64_t rounded(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

// A block of memory in use from call `first` to call `last`.
struct Interval {
  uint64_t bytes;
  uint32_t first, last;
  // Set by pack(): the offset in the arena, or in the room of this index.
  uint64_t offset = 0;
  std::optional<size_t> room = std::nullopt;
};

// Places blocks in rooms of given sizes, or in an arena, so that blocks in use at the same time do not overlap. Returns the
// size of the arena. fixed: blocks in rooms; their places do not change.
//
// Places the largest blocks first, each at its lowest fitting offset, as TensorFlow Lite's greedy planner by size (Pisarchyk
// and Lee, "Efficient memory management for deep neural net inference", 2020). Then it searches for a better order, as the
// planners of microcontrollers do (hill climbing): it moves a block from the arena's end before a block in use at the same
// time. The same blocks always get the same places.
uint64_t pack(std::vector<Interval>& blocks, uint64_t alignment, const std::vector<uint64_t>& rooms = {},
              const std::vector<Interval>& fixed = {});

}  // namespace plugrad::steps
