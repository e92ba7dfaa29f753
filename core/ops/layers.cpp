#include <plugrad/ops/layers.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
// x (.., k) times a matrix (k, n), as one product of two matrices.
Tensor rows_times(const Tensor& x, const Tensor& matrix) {
  if (x.rank() <= 2) return matmul(x, matrix);
  Shape shape = x.shape();
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x.size(i);
  shape[shape.size() - 1] = matrix.size(1);
  return reshape(matmul(reshape(x, {rows, x.size(-1)}), matrix), shape);
}
}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (autocasting()) [[unlikely]] return in_low_precision(linear, x, weight, bias);
  require_floating("linear", x);
  require_floating("linear", weight);
  if (!x.rank() || weight.rank() < 1 || weight.rank() > 2 || x.size(-1) != weight.size(-1))
    refuse("linear",
           "x is " + x.shape().text() + " and weight " + weight.shape().text() + ": expected (.., k) and (n, k) or (k)");
  const Tensor out = weight.rank() == 2 ? rows_times(x, transpose(weight)) : matmul(x, weight);
  if (!bias.defined()) return out;
  if (bias.rank() > 1 || (bias.rank() && (!out.rank() || bias.size(0) != out.size(-1))))
    refuse("linear", "bias is " + bias.shape().text() + " and weight " + weight.shape().text() +
                         ": expected a bias of one element for each row of weight");
  return add(out, bias);
}

}  // namespace plugrad
