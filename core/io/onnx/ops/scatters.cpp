#include <core/io/onnx/ops/positions.hpp>
#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad::io::onnx {
namespace {

ScatterReduction reduction_named(const std::string& name) {
  if (name == "add") return ScatterReduction::sum;
  if (name == "mul") return ScatterReduction::prod;
  if (name == "max") return ScatterReduction::amax;
  if (name == "min") return ScatterReduction::amin;
  throw Error(Code::invalid, "the reduction '" + name + "' is not one of none, add, mul, max and min");
}

Value scattered(Call& c) {
  const int axis = Call::axis(c.integer("axis", 0), c.rank(0));
  const std::string reduction = c.text("reduction", "none");
  const Tensor places = places_of(c, 1, c.tensor(0).size(axis));
  if (reduction == "none") return c.like(scatter(c.tensor(0), axis, places, c.tensor(2)));
  return c.like(scatter_reduce(c.tensor(0), axis, places, c.tensor(2), reduction_named(reduction), true));
}

Value scattered_nd(Call& c) {
  const Tensor &x = c.tensor(0), index = cast(c.tensor(1), DType::i64);
  if (!index.rank()) throw Error(Code::invalid, "the indices have no axes");
  const int64_t used = index.shape().back();
  if (used > x.rank()) throw Error(Code::invalid, "the indices have more numbers than the data have axes");
  int64_t rows = 1, inner = 1;
  for (int d = 0; d < x.rank(); ++d) (d < used ? rows : inner) *= x.size(d);
  Tensor flat = flat_positions(c, x.shape(), index, 0);
  flat = reshape(flat, {flat.count()});
  const Tensor data = reshape(x, {rows, inner}), source = reshape(c.tensor(2), {flat.count(), inner});
  const std::string reduction = c.text("reduction", "none");
  Tensor result;
  if (reduction == "none") result = index_copy(data, 0, flat, source);
  else if (reduction == "add") result = index_add(data, 0, flat, source);
  else result = index_reduce(data, 0, flat, source, reduction_named(reduction), true);
  return c.like(reshape(result, x.shape()));
}

// Writes rows of a cache from a place for each batch.
Value scattered_tensor(Call& c) {
  const Tensor &past = c.tensor(0), &update = c.tensor(1);
  const int axis = Call::axis(c.integer("axis", -2), past.rank());
  const int64_t batch = past.size(0), count = update.size(axis);
  Tensor place = expand(reshape(c.arange(count), {1, count}), {batch, count});
  if (c.has(2)) place = add(place, reshape(cast(c.tensor(2), DType::i64), {batch, 1}));
  if (c.text("mode", "linear") == "circular") place = remainder(place, past.size(axis));
  Shape shape = ones_shape(past.rank());
  shape[0] = batch;
  shape[static_cast<size_t>(axis)] = count;
  return c.like(scatter(past, axis, contiguous(expand(reshape(place, shape), update.shape())), update));
}

constexpr Operator kScatters[] = {
    {"ScatterElements", scattered},
    {"Scatter", scattered},
    {"ScatterND", scattered_nd},
    {"TensorScatter", scattered_tensor},
};
}  // namespace

std::span<const Operator> scatter_operators() { return kScatters; }

}  // namespace plugrad::io::onnx
