#include <plugrad/io/shuffle.hpp>

#include <plugrad/runtime/error.hpp>

#include <numeric>
#include <random>
#include <string>
#include <utility>

namespace plugrad::io {
namespace {

// Uniform below bound, without bias. std::shuffle and the distributions of <random> differ between standard libraries.
uint64_t below(uint64_t bound, std::mt19937_64& engine) {
  const uint64_t most = engine.max() - engine.max() % bound;
  uint64_t draw = engine();
  while (draw >= most) draw = engine();
  return draw % bound;
}

}  // namespace

std::vector<int64_t> shuffled_rows(int64_t count, uint64_t seed, int64_t epoch) {
  if (count < 0) throw Error(Code::invalid, "[shuffled_rows] count " + std::to_string(count) + " is negative");
  std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(epoch),
                      static_cast<uint32_t>(static_cast<uint64_t>(epoch) >> 32)};
  std::mt19937_64 engine(words);
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[below(i, engine)]);
  return rows;
}

}  // namespace plugrad::io
