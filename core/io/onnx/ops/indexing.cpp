#include <core/io/onnx/ops/positions.hpp>
#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/advanced_indexing.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/nonzero.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/sorting.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <compare>
#include <numeric>

namespace plugrad::io::onnx {

Tensor places_of(const Call& c, size_t i, int64_t extent) {
  return c.prepared({i}, [&] { return wrap_indices(c.tensor(i), extent); }, {0});
}

Tensor flat_positions(const Call& c, const Shape& shape, const Tensor& index, int batch) {
  const Shape index_shape = index.shape();
  const int count = static_cast<int>(index_shape.back());
  Tensor flat;
  int64_t stride = 1;
  for (int k = count - 1; k >= 0; --k) {
    const int64_t extent = shape[static_cast<size_t>(batch + k)];
    const Tensor at = select(index, index.rank() - 1, k);
    const Tensor place = mul(where(lt(at, 0), add(at, extent), at), stride);
    flat = flat.defined() ? add(flat, place) : place;
    stride *= extent;
  }
  if (!flat.defined()) {
    const std::vector<int64_t> outer(index_shape.begin(), index_shape.end() - 1);
    flat = zeros(outer, DType::i64, c.device());
  }
  int64_t batches = 1;
  for (int d = 0; d < batch; ++d) batches *= shape[static_cast<size_t>(d)];
  if (batch == 0) return flat;
  Shape each = ones_shape(flat.rank());
  for (int d = 0; d < batch; ++d) each[static_cast<size_t>(d)] = shape[static_cast<size_t>(d)];
  return add(flat, reshape(mul(c.arange(batches), stride), each));
}

namespace {

int64_t product_of(const Shape& shape, int begin, int end) {
  int64_t product = 1;
  for (int d = begin; d < end; ++d) product *= shape[static_cast<size_t>(d)];
  return product;
}

Value gathered(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = Call::axis(c.integer("axis", 0), x.rank());
  if (!c.rank(1) && c.known(1)) return c.like(select(x, axis, c.integer(1)));
  const Tensor index = places_of(c, 1, x.size(axis));
  std::vector<int64_t> shape;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != axis) shape.push_back(x.size(d));
    else
      for (const int64_t each : index.shape()) shape.push_back(each);
  }
  return c.like(reshape(index_select(x, axis, reshape(index, {index.count()})), shape));
}

Value gathered_elements(Call& c) {
  const int axis = Call::axis(c.integer("axis", 0), c.rank(0));
  return c.like(gather(c.tensor(0), axis, places_of(c, 1, c.tensor(0).size(axis))));
}

Value gathered_nd(Call& c) {
  const Tensor &x = c.tensor(0), index = cast(c.tensor(1), DType::i64);
  const int64_t batches = c.integer("batch_dims", 0);
  if (!index.rank() || batches < 0 || batches > std::min(x.rank(), index.rank() - 1))
    throw Error(Code::invalid, "batch_dims is " + std::to_string(batches) + ", which does not fit the axes");
  const int batch = static_cast<int>(batches), used = batch + static_cast<int>(index.shape().back());
  if (used > x.rank()) throw Error(Code::invalid, "the indices have more numbers than the data have axes");
  const Tensor flat = flat_positions(c, x.shape(), index, batch);
  const int64_t rows = product_of(x.shape(), 0, used), inner = product_of(x.shape(), used, x.rank());
  const Shape index_shape = index.shape();
  std::vector<int64_t> shape(index_shape.begin(), index_shape.end() - 1);
  for (int d = used; d < x.rank(); ++d) shape.push_back(x.size(d));
  return c.like(reshape(index_select(reshape(x, {rows, inner}), 0, reshape(flat, {flat.count()})), shape));
}

Value one_hot_values(Call& c) {
  const int64_t depth = c.integer(1);
  const int rank = c.rank(0) + 1, axis = Call::axis(c.integer("axis", -1), rank);
  Tensor index = cast(c.tensor(0), DType::i64);
  index = unsqueeze(where(lt(index, 0), add(index, depth), index), axis);
  const Tensor hot = eq(index, reshape(c.arange(depth), shape_along(rank, axis, depth)));
  return c.like(where(hot, select(c.tensor(2), 0, 1), select(c.tensor(2), 0, 0)), 2);
}

Values largest(Call& c) {
  const int64_t k = c.has(1) ? c.integer(1) : c.integer("k", 1);
  const ValuesIndices found =
      topk(c.tensor(0), k, Call::axis(c.integer("axis", -1), c.rank(0)), c.integer("largest", 1), true);
  return {c.like(found.values), found.indices};
}

Value nonzero_places(Call& c) {
  c.note_read();  // the shape of the result is not known before the run
  return contiguous(transpose(nonzero(c.tensor(0)), 0, 1));
}

Value compressed(Call& c) {
  const bool flat = !c.has_attribute("axis");
  const Tensor x = flat ? reshape(c.tensor(0), {c.tensor(0).count()}) : c.tensor(0);
  const std::vector<int64_t> chosen = c.integers(1);
  std::vector<int64_t> index;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) index.push_back(static_cast<int64_t>(i));
  const Tensor places = c.made(index, {static_cast<int64_t>(index.size())});
  return c.like(index_select(x, flat ? 0 : Call::axis(c.integer("axis", 0), x.rank()), places));
}

Value reversed_sequences(Call& c) {
  const Tensor& x = c.tensor(0);
  const int time = static_cast<int>(c.integer("time_axis", 0));
  const Tensor step = reshape(c.arange(x.size(time)), {x.size(time), 1});
  const Tensor length = reshape(cast(c.tensor(1), DType::i64), {1, c.tensor(1).count()});
  Tensor index = where(lt(step, length), sub(sub(length, Number(1)), step), step);
  if (time == 1) index = transpose(index, 0, 1);
  Shape shape = ones_shape(x.rank());
  shape[0] = index.size(0);
  shape[1] = index.size(1);
  return c.like(gather(x, time, contiguous(expand(reshape(index, shape), x.shape()))));
}

// The order of the rows of a matrix (rows, width) of numbers, on the host.
struct UniqueRows {
  std::vector<int64_t> first, inverse, counts;  // in the order of the results
};
// Numbers in order, NaNs last and equal to each other.
template <class T> std::weak_ordering order_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) return a <=> b;
  else if (std::isnan(a) || std::isnan(b)) return std::isnan(a) <=> std::isnan(b);
  else return a < b ? std::weak_ordering::less : a > b ? std::weak_ordering::greater : std::weak_ordering::equivalent;
}

template <class T> UniqueRows unique_rows(const std::vector<T>& all, size_t rows, size_t width, bool sorted) {
  const auto compared = [&](size_t a, size_t b) {
    for (size_t k = 0; k < width; ++k)
      if (const auto order = order_of(all[a * width + k], all[b * width + k]); order != 0) return order;
    return std::weak_ordering::equivalent;
  };
  std::vector<size_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return compared(a, b) < 0; });
  std::vector<std::vector<size_t>> groups;
  for (const size_t each : order) {
    if (groups.empty() || compared(groups.back()[0], each) != 0) groups.emplace_back();
    groups.back().push_back(each);
  }
  if (!sorted) std::ranges::sort(groups, {}, [](const auto& group) { return group[0]; });
  UniqueRows found;
  found.inverse.resize(rows);
  for (const auto& group : groups) {
    for (const size_t each : group) found.inverse[each] = static_cast<int64_t>(found.first.size());
    found.first.push_back(static_cast<int64_t>(group[0]));
    found.counts.push_back(static_cast<int64_t>(group.size()));
  }
  return found;
}

Values unique_values(Call& c) {
  const bool flat = !c.has_attribute("axis");
  const Tensor& x = c.tensor(0);
  const int axis = flat ? 0 : Call::axis(c.integer("axis", 0), x.rank());
  const Tensor rows = flat ? reshape(x, {x.count()}) : movedim(x, {axis}, {0});
  Value on_rows(contiguous(rows), c.type(0));
  on_rows.level = c.value(0).level;
  const size_t count = static_cast<size_t>(rows.size(0));
  const size_t width = count ? static_cast<size_t>(rows.count()) / count : 0;
  const bool sorted = c.integer("sorted", 1);
  const UniqueRows found = c.floating(0) ? unique_rows(c.host_reals(on_rows), count, width, sorted)
                                         : unique_rows(c.host_integers(on_rows), count, width, sorted);
  const auto numbers = [&](const std::vector<int64_t>& all) {
    return Tensor::from<int64_t>(all, {static_cast<int64_t>(all.size())}, c.device());
  };
  const Tensor first = numbers(found.first);
  return {c.like(index_select(flat ? rows : x, axis, first)), first, numbers(found.inverse), numbers(found.counts)};
}

constexpr Operator kIndexing[] = {
    {"Gather", gathered},      {"GatherElements", gathered_elements},
    {"GatherND", gathered_nd}, {"OneHot", one_hot_values},
    {"TopK", largest},         {"NonZero", nonzero_places},
    {"Compress", compressed},  {"ReverseSequence", reversed_sequences},
    {"Unique", unique_values},
};
}  // namespace

std::span<const Operator> indexing_operators() { return kIndexing; }

}  // namespace plugrad::io::onnx
