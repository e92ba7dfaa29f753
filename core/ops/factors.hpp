// Factors of matrices (.., m, n), computed in host memory by the extension of plugrad/sdk/linalg.h. No gradient is recorded.
#pragma once
#include <plugrad/sdk/linalg.h>
#include <core/runtime/observe/observed.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <vector>

namespace plugrad {

// For each matrix of a batch: 0, or, if it could not be factored, a position counted from 1.
using Failures = std::vector<int32_t>;

// A device for factoring matrices, used during a call of a function: the device of the function's operands, or a fallback
// allowed by the policy. Recording is off during its lifetime.
class Factors {
 public:
  // name: the function's, for errors. Throws Error (unsupported) if the operands' device cannot factor and may not fall
  // back.
  Factors(const char* name, const Tensor& operand);

  // A dense copy of x on this device, or x itself; and the result of the function, back on the operands' device.
  Tensor take(const Tensor& x) const;
  Tensor give(const Tensor& x) const;

  // The factors of dense tensors on this device. Their shapes are as linalg.h states, with the batch in front; vectors have
  // no axis of extent 1.
  struct Lu {
    Tensor lu, pivots;
  };
  enum class Pivots { any, nonzero };  // nonzero: throws LinAlgError with the first matrix that has a pivot of 0
  Lu lu(const Tensor& a, Pivots allowed = Pivots::any) const;
  Tensor swap_rows(const Tensor& pivots, const Tensor& x, bool backwards = false) const;
  Tensor solve_triangular(const Tensor& a, const Tensor& x, bool upper, bool unit = false) const;
  Tensor cholesky(const Tensor& a) const;
  std::vector<Tensor> qr(const Tensor& a, bool complete, bool only_r) const;    // q, r
  std::vector<Tensor> eigh(const Tensor& a, bool only_values) const;            // values, vectors
  std::vector<Tensor> svd(const Tensor& a, bool full, bool only_values) const;  // u, s, vh
  // The solution of a x = b from the factors of a. Divides by a pivot of 0.
  Tensor solve_lu(const Lu& factors, const Tensor& b) const;

 private:
  Tensor empty(Shape batch, std::initializer_list<int64_t> extents, DType dtype) const;

  const char* name_;
  Device home_, device_;
  const plugrad_linalg* table_;
  const NoGrad unrecorded_;
  observe::Event event_;
};

// The axes before the last two, or before the last `inner` ones.
Shape batch_of(const Tensor& x, int inner = 2);
enum class Scalars { real, any };  // any: complex ones, too
// x, as f32 if it holds integers or bools. Throws Error (invalid) for other dtypes and for fewer axes than two.
Tensor matrices_of(const char* name, const Tensor& x, Scalars allowed = Scalars::real);
// The same for square matrices.
Tensor square_matrices(const char* name, const Tensor& x, Scalars allowed = Scalars::real);
// a (.., m, n) and b (.., m, k) in a common dtype, broadcast to a common batch. Throws Error (invalid) if they do not fit.
struct System {
  Tensor a, b;
};
System system_of(const char* name, const Tensor& a, const Tensor& b, Scalars allowed = Scalars::real);
// Whether b is vectors: it has rank 1, or the shape of a without its last axis.
bool is_vectors(const Tensor& a, const Tensor& b);
// A matrix with the extents of a, with 1 on its diagonal and 0 elsewhere.
Tensor identity_like(const Tensor& a);
// first: rows or columns 0 .. count - 1; rest: the rows or columns from count on.
Tensor first(const Tensor& x, int axis, int64_t count);
Tensor rest(const Tensor& x, int axis, int64_t count);
// The distance from 1 to the next number of f32 or f64.
double epsilon(DType dtype);

}  // namespace plugrad
