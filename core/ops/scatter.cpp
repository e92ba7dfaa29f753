#include <plugrad/ops/scatter.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/positions.hpp>
#include <core/ops/run.hpp>
#include <core/ops/scatter.hpp>
#include <plugrad/ops/advanced_indexing.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {

Tensor Corner::operator()(const Tensor& x) const {
  Tensor part = x;
  for (int i = 0; i < x.rank(); ++i)
    if (part.size(i) != extents[static_cast<size_t>(i)])
      part = strided_part(part, {i, 0, extents[static_cast<size_t>(i)], 1});
  return part;
}

ScatterTarget scatter_target(const char* name, const Tensor& x, int axis, const Tensor& index) {
  require_defined(x, name);
  require_integer(name, index, "index");
  if (x.device() != index.device()) throw_not_together(name, x, index);
  const int at = normal_axis(axis, x.rank(), name);
  bool fits = x.rank() == index.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == at || index.size(i) <= x.size(i);
  if (!fits)
    refuse(name, "index of shape " + index.shape().text() + " does not fit x of shape " + x.shape().text() + " along axis " +
                     std::to_string(at) + ": ranks must be equal, and its other extents no larger");
  Corner corner{index.shape()};
  corner.extents[static_cast<size_t>(at)] = x.size(at);
  return {corner(x), at, indices_from_start(name, index, x.size(at)), corner};
}

Tensor scatter_source(const char* name, const Tensor& x, const Tensor& index, const Tensor& src) {
  require_defined(src, name);
  require_together(name, x, src);
  bool fits = src.rank() == index.rank();
  for (int i = 0; fits && i < src.rank(); ++i) fits = index.size(i) <= src.size(i);
  if (!fits)
    refuse(name, "src has shape " + src.shape().text() + ", but index has shape " + index.shape().text() +
                     ": ranks must be equal, and index no larger");
  return Corner{index.shape()}(src);
}

Tensor with_target(const Tensor& x, const ScatterTarget& target, const Tensor& part) {
  return part.shape() == x.shape() ? part : replaced(x, part, target.corner);
}

Tensor as_line(const Tensor& x) { return x.rank() ? x : reshape(x, {1}); }
Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  require_defined(x, "scatter");
  require_defined(index, "scatter");
  require_defined(src, "scatter");
  if (!x.rank()) return reshape(scatter(as_line(x), axis, as_line(index), as_line(src)), {});
  const ScatterTarget target = scatter_target("scatter", x, axis, index);
  const Tensor source = scatter_source("scatter", x, index, src);
  if (!index.count()) return clone(x);
  const Writers writers = last_writers(target.index, target.axis, x.size(target.axis));
  return with_target(x, target, where(writers.written, gather(source, target.axis, writers.number), target.part));
}

Tensor scatter(const Tensor& x, int axis, const Tensor& index, Number value) {
  require_defined(x, "scatter");
  require_defined(index, "scatter");
  return scatter(x, axis, index, expand(scalar(value, x.dtype(), x.device()), index.shape()));
}

}  // namespace plugrad
