// Composes collectives that an engine lacks from collectives that the engine has.
#pragma once
#include <core/distributed/engine.hpp>

#include <chrono>
#include <functional>
#include <vector>

namespace plugrad::distributed {

// The group in which collectives run. [communication thread]
struct Composer {
  Engine& engine;
  plugrad_group* group;
  int rank, size;
  std::chrono::milliseconds timeout;
  std::function<bool()> ends_early;

  // Runs a collective, by the engine if it has it.
  Ending run(const plugrad_collective& collective) const;
  // Runs a reduction as ALL_TO_ALL, sums of the core and ALL_GATHER: each rank sends and receives 2 (size - 1) / size of the
  // bytes, as in a ring. The sums are a binary tree over the ranks, in the accumulator's dtype.
  Ending reduce(const plugrad_collective& collective, bool average) const;

 private:
  Ending compose(const plugrad_collective& collective) const;
  Ending blocks_of_all(const plugrad_collective& collective, const void* from, std::vector<char>& blocks) const;
  Ending messages(const std::vector<plugrad_collective>& list) const;
};

// Reduces `size` rows of `count` elements to one row, as a binary tree: rows 0 and 1, 2 and 3, .. ; then the sums of pairs.
// how: PLUGRAD_REDUCE_SUM, ..; with average, the sum is divided by the number of rows. f16 and bf16 are added in f32 and
// rounded once.
void reduce_rows(uint8_t dtype, uint32_t how, bool average, const void* rows, int size, uint64_t count, void* to);
// Divides elements by a number.
void divide(uint8_t dtype, void* elements, uint64_t count, int by);

}  // namespace plugrad::distributed
