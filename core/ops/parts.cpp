#include <plugrad/ops/parts.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/replace.hpp>
#include <core/ops/run.hpp>
#include <core/ops/slicing.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {

Tensor narrow(const Tensor& x, int axis, int64_t start, int64_t length) {
  require_defined(x, "narrow");
  const int at = normal_axis(axis, x.rank(), "narrow");
  const int64_t extent = x.size(at), first = start < 0 ? start + extent : start;
  const std::string of_axis = "axis " + std::to_string(at) + " of extent " + std::to_string(extent);
  if (first < 0 || first > extent)
    throw Error(Code::index_error, "[narrow] start " + std::to_string(start) + " is out of range for " + of_axis);
  if (length < 0 || length > extent - first)
    refuse("narrow", std::to_string(length) + " elements from " + std::to_string(start) + " on exceed " + of_axis +
                         ": give a length from 0 to " + std::to_string(extent - first));
  return strided_part(x, {at, first, length, 1});
}

std::vector<Tensor> unbind(const Tensor& x, int axis) {
  require_defined(x, "unbind");
  const int at = normal_axis(axis, x.rank(), "unbind");
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < x.size(at); ++i) parts.push_back(select(x, at, i));
  return parts;
}

// --- Diagonals.

namespace {
struct Diagonal {
  int64_t offset;
  int axis1, axis2;
  Tensor operator()(const Tensor& x) const { return diagonal(x, offset, axis1, axis2); }
};

Diagonal diagonal_of(const char* name, int rank, int64_t offset, int axis1, int axis2) {
  const Diagonal d{offset, normal_axis(axis1, rank, name), normal_axis(axis2, rank, name)};
  if (d.axis1 == d.axis2) refuse(name, "axis " + std::to_string(d.axis1) + " is given twice: name two axes");
  return d;
}

// The view of a diagonal.
plugrad_view along(const plugrad_view& x, const Diagonal& d) {
  plugrad_view v = x;
  v.rank = 0;
  for (int i = 0; i < x.rank; ++i) {
    if (i == d.axis1 || i == d.axis2) continue;
    v.shape[v.rank] = x.shape[i];
    v.strides[v.rank++] = x.strides[i];
  }
  const int64_t row = std::max<int64_t>(-d.offset, 0), column = std::max<int64_t>(d.offset, 0);
  const int64_t length = std::max<int64_t>(std::min(x.shape[d.axis1] - row, x.shape[d.axis2] - column), 0);
  if (length)
    v.offset += static_cast<uint64_t>((row * x.strides[d.axis1] + column * x.strides[d.axis2]) *
                                      static_cast<int64_t>(dtype_size(x.dtype)));
  v.shape[v.rank] = length;
  v.strides[v.rank++] = x.strides[d.axis1] + x.strides[d.axis2];
  return v;
}
}  // namespace

Tensor diagonal(const Tensor& x, int64_t offset, int axis1, int axis2) {
  static constexpr auto kRule =
      rule("diagonal", gradient<kShape, kPayload>([](const Tensor& grad, const Shape& shape, const Diagonal& d) {
             return replaced(zeros(shape, grad.dtype(), grad.device()), grad, d);
           }));
  require_defined(x, "diagonal");
  const Diagonal d = diagonal_of("diagonal", x.rank(), offset, axis1, axis2);
  plugrad_view v = along(view_of(x), d);
  set_layout(v, device_of(x).info.alignment);
  return differentiable(kRule, d, with_view(x, v), x);
}

Tensor diag(const Tensor& x, int64_t offset) {
  require_defined(x, "diag");
  if (x.rank() == 1) return diag_embed(x, offset);
  if (x.rank() != 2) refuse("diag", "x has shape " + x.shape().text() + ": expected a vector or a matrix");
  return clone(diagonal(x, offset));
}

Tensor diagflat(const Tensor& x, int64_t offset) {
  require_defined(x, "diagflat");
  return diag(reshape(x, {x.count()}), offset);
}

Tensor diag_embed(const Tensor& x, int64_t offset, int axis1, int axis2) {
  require_defined(x, "diag_embed");
  if (!x.rank()) refuse("diag_embed", "x has rank 0: expected one axis or more");
  const Diagonal d = diagonal_of("diag_embed", x.rank() + 1, offset, axis1, axis2);
  const int64_t extent = x.size(-1) + std::abs(offset);
  Shape shape;
  for (int i = 0, next = 0; i <= x.rank(); ++i) shape.push_back(i == d.axis1 || i == d.axis2 ? extent : x.size(next++));
  return replaced(zeros(shape, x.dtype(), x.device()), x, d);
}

// --- Copies with a replaced part.

namespace {
template <class Part> Tensor with_part(const char* name, const Tensor& x, const Tensor& src, const Part& part) {
  require_defined(src, name);
  require_together(name, x, src);
  const Shape shape = unrecorded_part(x, part).shape();
  if (src.shape() != shape)
    refuse(name,
           "src has shape " + src.shape().text() + ", but the part has shape " + shape.text() + ": they must be equal");
  return replaced(x, src, part);
}

struct Element {
  int axis;
  int64_t index;
  Tensor operator()(const Tensor& x) const { return select(x, axis, index); }
};
struct Range {
  int axis;
  int64_t start, end, step;
  Tensor operator()(const Tensor& x) const { return slice(x, axis, start, end, step); }
};
}  // namespace

Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset, int axis1, int axis2) {
  require_defined(x, "diagonal_scatter");
  return with_part("diagonal_scatter", x, src, diagonal_of("diagonal_scatter", x.rank(), offset, axis1, axis2));
}
Tensor select_scatter(const Tensor& x, const Tensor& src, int axis, int64_t index) {
  require_defined(x, "select_scatter");
  return with_part("select_scatter", x, src, Element{axis, index});
}
Tensor slice_scatter(const Tensor& x, const Tensor& src, int axis, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) {
  require_defined(x, "slice_scatter");
  const bool back = step < 0;
  return with_part("slice_scatter", x, src,
                   Range{axis, start.value_or(back ? INT64_MAX : 0), end.value_or(back ? INT64_MIN : INT64_MAX), step});
}

}  // namespace plugrad
