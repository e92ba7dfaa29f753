#include <plugrad/ops/joining.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <iterator>

namespace plugrad {

Tensor atleast_1d(const Tensor& x) {
  require_defined(x, "atleast_1d");
  return x.rank() ? x : unsqueeze(x, 0);
}
Tensor atleast_2d(const Tensor& x) {
  require_defined(x, "atleast_2d");
  return x.rank() > 1 ? x : unsqueeze(atleast_1d(x), 0);
}
Tensor atleast_3d(const Tensor& x) {
  require_defined(x, "atleast_3d");
  return x.rank() > 2 ? x : unsqueeze(atleast_2d(x), 2);
}

namespace {
std::vector<Tensor> each_as(const std::vector<Tensor>& tensors, Tensor (*f)(const Tensor&)) {
  std::vector<Tensor> all;
  std::ranges::transform(tensors, std::back_inserter(all), f);
  return all;
}

Tensor as_column(const Tensor& x) {
  require_defined(x, "column_stack");
  return x.rank() > 1 ? x : unsqueeze(atleast_1d(x), 1);
}
}  // namespace

Tensor hstack(const std::vector<Tensor>& tensors) {
  const std::vector<Tensor> all = each_as(tensors, atleast_1d);
  return cat(all, all.empty() || all.front().rank() == 1 ? 0 : 1);
}
Tensor vstack(const std::vector<Tensor>& tensors) { return cat(each_as(tensors, atleast_2d), 0); }
Tensor dstack(const std::vector<Tensor>& tensors) { return cat(each_as(tensors, atleast_3d), 2); }
Tensor column_stack(const std::vector<Tensor>& tensors) { return cat(each_as(tensors, as_column), 1); }

Tensor broadcast_to(const Tensor& x, const Shape& shape) { return expand(x, shape); }

Tensor sum_to_size(const Tensor& x, const Shape& size) {
  require_defined(x, "sum_to_size");
  const int added = x.rank() - size.rank();
  Shape over;
  bool fits = added >= 0;
  for (int i = 0; fits && i < x.rank(); ++i) {
    const int64_t wanted = i < added ? 1 : size[static_cast<size_t>(i - added)];
    fits = wanted == 1 || wanted == x.size(i);
    if (i < added || wanted != x.size(i)) over.push_back(i);
  }
  if (!fits) refuse("sum_to_size", size.text() + " does not broadcast to " + x.shape().text() + ": give another shape");
  return over.empty() ? x : reshape(sum(x, over), size);
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  Shape shape;
  for (const Tensor& each : tensors) {
    require_defined(each, "broadcast_tensors");
    shape = broadcast_shapes(shape, each.shape());
  }
  std::vector<Tensor> all;
  for (const Tensor& each : tensors) all.push_back(expand(each, shape));
  return all;
}

}  // namespace plugrad
