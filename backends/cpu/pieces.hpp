// Pieces of the workspace of a call, for plans that need several arrays.
#pragma once
#include <backends/cpu/contraction.hpp>

#include <cstdint>

namespace plugrad::cpu {

// Hands out pieces of a workspace; without a workspace, it measures the required size.
template <class W> class Pieces {
 public:
  explicit Pieces(W* first) : first_(first) {}
  W* take(int64_t count) {
    W* const piece = first_ ? first_ + taken_ : nullptr;
    taken_ += round_up(count, 64 / static_cast<int64_t>(sizeof(W)));
    return piece;
  }
  int64_t taken() const { return taken_; }

 private:
  W* first_;
  int64_t taken_ = 0;
};

}  // namespace plugrad::cpu
