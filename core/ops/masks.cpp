#include <plugrad/ops/masks.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
// Column less row of each element of a matrix (rows, columns).
Tensor diagonals(int64_t rows, int64_t columns, Device device) {
  const Tensor row = arange(0, rows, 1, DType::i64, device), column = arange(0, columns, 1, DType::i64, device);
  return sub(column, unsqueeze(row, 1));
}

Tensor diagonals_of(const Tensor& x, const char* name) {
  require_defined(x, name);
  if (x.rank() < 2) refuse(name, "x has shape " + x.shape().text() + ": expected two axes or more");
  return diagonals(x.size(-2), x.size(-1), x.device());
}
}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, Number value) {
  require_defined(x, "masked_fill");
  require_dtype("masked_fill", mask, DType::boolean, "mask");
  if (x.dtype() == DType::boolean) return where(mask, scalar(value.real() != 0, DType::boolean, x.device()), x);
  return where(mask, is_integer(x.dtype()) ? Number(value.integer()) : value, x);
}
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  require_defined(x, "masked_fill");
  require_defined(value, "masked_fill");
  require_dtype("masked_fill", mask, DType::boolean, "mask");
  if (value.rank()) refuse("masked_fill", "value has shape " + value.shape().text() + ": expected rank 0");
  return where(mask, cast(value, x.dtype()), x);
}

Tensor tril(const Tensor& x, int64_t diagonal) { return where(le(diagonals_of(x, "tril"), diagonal), x, 0); }
Tensor triu(const Tensor& x, int64_t diagonal) { return where(ge(diagonals_of(x, "triu"), diagonal), x, 0); }

Tensor eye(int64_t n, int64_t m, DType dtype, Device device) {
  if (n < 0 || m < -1)
    throw Error(Code::invalid, "[eye] extents " + std::to_string(n) + " and " + std::to_string(m) + ": give none below 0");
  return cast(eq(diagonals(n, m < 0 ? n : m, device), 0), dtype);
}

Tensor one_hot(const Tensor& indices, int64_t num_classes) {
  require_integer("one_hot", indices, "indices");
  if (num_classes < 1) refuse("one_hot", "num_classes is " + std::to_string(num_classes) + ": expected 1 or more");
  const Tensor index = cast(reshape(indices, {indices.count(), 1}), DType::i64);
  Shape shape = indices.shape();
  shape.push_back(num_classes);
  const Tensor none = zeros({indices.count(), num_classes}, DType::i64, indices.device());
  return reshape(scatter_add(none, 1, index, ones_like(index)), shape);
}

}  // namespace plugrad
