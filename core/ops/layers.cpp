#include <plugrad/ops/layers.hpp>

#include <core/ops/affine.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
// x (.., k) times the transpose of a matrix (n, k), plus a bias (may be undefined), as a single product of two matrices.
Tensor rows_times(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.rank() == 2) return affine(x, weight, bias);
  Shape shape = x.shape();
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x.size(i);
  shape[shape.size() - 1] = weight.size(0);
  return reshape(affine(reshape(x, {rows, x.size(-1)}), weight, bias), shape);
}
}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(linear, x, weight, bias);
  require_inexact("linear", x);
  require_inexact("linear", weight);
  if (!x.rank() || weight.rank() < 1 || weight.rank() > 2 || x.size(-1) != weight.size(-1))
    refuse("linear",
           "x is " + x.shape().text() + " and weight " + weight.shape().text() + ": expected (.., k) and (n, k) or (k)");
  const bool matrix = weight.rank() == 2;
  const int64_t rows = matrix ? weight.size(0) : 1;
  if (bias.defined() && (bias.rank() > 1 || (bias.rank() && (!matrix || bias.size(0) != rows))))
    refuse("linear", "bias is " + bias.shape().text() + " and weight " + weight.shape().text() +
                         ": expected a bias of one element for each row of weight");
  if (matrix) return rows_times(x, weight, bias);
  return bias.defined() ? add(matmul(x, weight), bias) : matmul(x, weight);
}

}  // namespace plugrad
