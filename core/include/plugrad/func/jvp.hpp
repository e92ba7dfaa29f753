// Functions of functions: derivatives along directions, in forward mode.
#pragma once
#include <plugrad/func/vmap.hpp>

namespace plugrad::func {

struct Jvp {
  Tensors results;
  Tensors tangents;  // of the results, in their shapes
};

// Returns f's results at `primals`, and their derivatives along `tangents`, which have the shapes, dtypes and devices of the
// primals. Each op of f computes its value and its tangent, so the cost does not depend on the number of primals. Calls
// nest; gradients pass through. Throws Error (invalid) for tangents that do not fit.
PLUGRAD_API Jvp jvp(const Function& f, const Tensors& primals, const Tensors& tangents);

// The parts of jvp, for a function that the caller calls while the object lives. Objects end in the reverse order of their
// making.
class PLUGRAD_API Tangents {
 public:
  Tangents();
  ~Tangents();
  Tangents(const Tangents&) = delete;
  Tangents& operator=(const Tangents&) = delete;
  Tensor pair(const Tensor& primal, const Tensor& tangent) const;
  Tensor primal(const Tensor& y) const;
  Tensor tangent(const Tensor& y) const;  // zeros where y does not depend on a pair

 private:
  struct Inner;
  std::unique_ptr<Inner> inner_;
};

}  // namespace plugrad::func
