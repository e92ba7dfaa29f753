// The limited-memory BFGS matrix B = theta I - W M W^T of the last moves: Byrd, Nocedal and Schnabel, Representations of
// Quasi-Newton Matrices, 1994.
#pragma once
#include <core/optimize/vectors.hpp>

#include <cstddef>
#include <deque>

namespace plugrad::optimize {

class LbfgsMatrix {
 public:
  explicit LbfgsMatrix(size_t most) : most_(most) {}
  // Adds a move, whose curvature <step, change> is positive, and forgets the oldest one beyond `most`.
  void add(Vector step, Vector change);
  void clear();
  size_t moves() const { return moves_.size(); }
  double theta() const { return theta_; }

  // The inverse of B times g.
  Vector inverse_times(const Vector& g) const;

  // W has 2 moves() columns: the changes of the gradient, then theta times the steps.
  Vector row_of_w(size_t i) const;
  Vector w_transposed_times(const Vector& x) const;
  // Returns M. Throws nothing: a singular M holds elements that are not finite.
  Matrix middle() const;

 private:
  struct Move {
    Vector step, change;
    double curvature;
  };
  size_t most_;
  std::deque<Move> moves_;
  double theta_ = 1;
};

// Returns the x of a x = b, by elimination with partial pivoting; not finite if a is singular. b may have several columns.
Matrix solved(Matrix a, Matrix b);

}  // namespace plugrad::optimize
