#include <plugrad/ops/selection.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/positions.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/advanced_indexing.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
using Indices = std::vector<Index>;

Tensor raveled(const Tensor& x) { return reshape(x, {x.count()}); }

void require_index(const char* name, const Tensor& x, const Tensor& index) {
  require_defined(x, name);
  require_integer(name, index, "index");
  if (x.device() != index.device()) throw_not_together(name, x, index);
}

// Returns index as a key along an axis.
Indices key_along(int axis, const Tensor& index) {
  Indices key(static_cast<size_t>(axis), Slice{});
  key.push_back(index);
  return key;
}

// Operands of a function on an axis and a list of its elements. A tensor of rank 0 counts as a tensor of rank 1.
struct Listed {
  Tensor x;
  int axis;
  Tensor index;  // rank 1
};

// Negative indices are refused.
Listed listed(const char* name, const Tensor& x, int axis, const Tensor& index) {
  require_index(name, x, index);
  if (index.rank() > 1) refuse(name, "index has shape " + index.shape().text() + ": expected rank 1 or 0");
  const Tensor whole = x.rank() ? x : reshape(x, {1});
  const int at = normal_axis(axis, whole.rank(), name);
  return {whole, at, indices_from_start(name, raveled(index), whole.size(at))};
}

// source in the shape of the listed elements.
Tensor fitting_source(const char* name, const Listed& at, const Tensor& x, const Tensor& source) {
  require_defined(source, name);
  require_together(name, x, source);
  Shape shape = at.x.shape();
  shape[static_cast<size_t>(at.axis)] = at.index.count();
  const Tensor given = source.rank() == 0 && shape.rank() == 1 ? reshape(source, {1}) : source;
  if (given.shape() != shape || source.rank() > std::max(x.rank(), 1))
    refuse(name, "source has shape " + source.shape().text() + ", expected " + shape.text() +
                     ": that of x with as many elements along the axis as index has");
  return given;
}

// The index along the axis, expanded to the remaining extents of x.
Tensor spread(const Listed& at) {
  Shape along(std::vector<int64_t>(static_cast<size_t>(at.x.rank()), 1)), shape = at.x.shape();
  along[static_cast<size_t>(at.axis)] = shape[static_cast<size_t>(at.axis)] = at.index.count();
  return expand(reshape(at.index, along), shape);
}

// The broadcast shape of a and b, with the extent `along` at the axis.
Shape common_extents(const char* name, const Tensor& a, const Tensor& b, int axis, int64_t along) {
  if (a.rank() != b.rank())
    refuse(name, "x has shape " + a.shape().text() + " and indices " + b.shape().text() + ": the ranks must be equal");
  Shape x = a.shape(), y = b.shape();
  x[static_cast<size_t>(axis)] = y[static_cast<size_t>(axis)] = 1;
  Shape common = broadcast_shapes(x, y);
  common[static_cast<size_t>(axis)] = along;
  return common;
}
}  // namespace

Tensor take(const Tensor& x, const Tensor& index, std::optional<int64_t> axis) {
  require_index("take", x, index);
  const Tensor whole = axis && x.rank() ? x : raveled(x);
  const int at = axis ? normal_axis(*axis, whole.rank(), "take") : 0;
  Shape shape;
  for (int i = 0; i < at; ++i) shape.push_back(whole.size(i));
  for (const int64_t extent : index.shape()) shape.push_back(extent);
  for (int i = at + 1; i < whole.rank(); ++i) shape.push_back(whole.size(i));
  return reshape(plugrad::index(whole, key_along(at, raveled(index))), shape);
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> axis) {
  require_index("take_along_dim", x, indices);
  if (!axis) return take_along_dim(raveled(x), raveled(indices), 0);
  const int at = normal_axis(*axis, x.rank(), "take_along_dim");
  const Shape whole = common_extents("take_along_dim", x, indices, at, x.size(at)),
              shape = common_extents("take_along_dim", x, indices, at, indices.size(at));
  return gather(expand(x, whole), at, expand(wrap_indices(indices, x.size(at)), shape));
}
Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis) { return take_along_dim(x, indices, axis); }

Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate) {
  require_index("put", x, index);
  require_defined(source, "put");
  require_together("put", x, source);
  if (index.count() != source.count())
    refuse("put", "index has " + std::to_string(index.count()) + " elements and source " + std::to_string(source.count()) +
                      ": they must be equal");
  return reshape(index_put(raveled(x), {raveled(index)}, raveled(source), accumulate), x.shape());
}

Tensor put_along_axis(const Tensor& x, const Tensor& indices, const Tensor& values, int axis) {
  require_index("put_along_axis", x, indices);
  require_defined(values, "put_along_axis");
  const int at = normal_axis(axis, x.rank(), "put_along_axis");
  const Shape shape = common_extents("put_along_axis", x, indices, at, indices.size(at));
  return scatter(x, at, expand(wrap_indices(indices, x.size(at)), shape), expand(cast(values, x.dtype()), shape));
}

Tensor index_select(const Tensor& x, int axis, const Tensor& index) {
  const Listed at = listed("index_select", x, axis, index);
  const Tensor chosen = plugrad::index(at.x, key_along(at.axis, at.index));
  return x.rank() ? chosen : reshape(chosen, {});
}

Tensor index_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source, Number alpha) {
  const Listed at = listed("index_add", x, axis, index);
  const Tensor added = fitting_source("index_add", at, x, source);
  const bool scaled = alpha.floating() || alpha.integer() != 1;
  return reshape(scatter_add(at.x, at.axis, spread(at), scaled ? mul(added, alpha) : added), x.shape());
}

Tensor index_copy(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  const Listed at = listed("index_copy", x, axis, index);
  const Tensor copied = fitting_source("index_copy", at, x, source);
  return reshape(index_put(at.x, key_along(at.axis, at.index), copied), x.shape());
}

Tensor index_fill(const Tensor& x, int axis, const Tensor& index, const Tensor& value) {
  require_index("index_fill", x, index);
  const Tensor wrapped = wrap_indices(index, x.rank() ? x.size(normal_axis(axis, x.rank(), "index_fill")) : 1);
  const Listed at = listed("index_fill", x, axis, wrapped);
  require_defined(value, "index_fill");
  if (value.rank()) refuse("index_fill", "value has shape " + value.shape().text() + ": expected rank 0");
  return reshape(index_put(at.x, key_along(at.axis, at.index), value), x.shape());
}
Tensor index_fill(const Tensor& x, int axis, const Tensor& index, Number value) {
  require_defined(x, "index_fill");
  return index_fill(x, axis, index, scalar(value, x.dtype(), x.device()));
}

}  // namespace plugrad
