#include <plugrad/ops/advanced_indexing.hpp>

#include <core/autograd/node.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/positions.hpp>
#include <core/ops/replace.hpp>
#include <core/runtime/observe/observer.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
[[noreturn]] void refuse_index(const std::string& why) { throw Error(Code::index_error, "[index] " + why); }

bool is_mask(const Tensor& x) { return x.dtype() == DType::boolean; }

// --- Keys.

// A key for tensors of a fixed shape. The key's tensors are on the same device: masks, and integers of rank 1 or more.
struct Key {
  std::vector<Index> items;
  int rest = 0;  // number of axes covered by the ellipsis
};

const Tensor* tensor_of(const Index& item) { return std::get_if<Tensor>(&item.item()); }
template <class T> const T* as(const Index& item) { return std::get_if<T>(&item.item()); }

Index resolved(const Tensor& x, const Index& item) {
  if (const bool* truth = as<bool>(item)) return full({}, *truth, DType::boolean, x.device());
  const Tensor* tensor = tensor_of(item);
  if (!tensor) return item;
  require_defined(*tensor, "index");
  if (is_floating(tensor->dtype()))
    refuse_index(std::string("a tensor of ") + dtype_name(tensor->dtype()) + " is no index: cast it to i64 or bool");
  if (!is_mask(*tensor) && !tensor->rank() && !observe::hides_elements()) return tensor->item<int64_t>();
  return to(*tensor, x.device());
}

int axes_taken(const Index& item) {
  if (const Tensor* tensor = tensor_of(item)) return is_mask(*tensor) ? tensor->rank() : 1;
  return as<int64_t>(item) || as<Slice>(item);
}

Key resolved(const Tensor& x, const std::vector<Index>& items) {
  require_defined(x, "index");
  Key key;
  int taken = 0, ellipses = 0;
  for (const Index& each : items) {
    key.items.push_back(resolved(x, each));
    taken += axes_taken(key.items.back());
    ellipses += as<Ellipsis>(each) != nullptr;
  }
  if (ellipses > 1) refuse_index("'...' occurs " + std::to_string(ellipses) + " times: expected once at most");
  if (taken > x.rank())
    refuse_index(std::to_string(taken) + " axes are indexed of a tensor of shape " + x.shape().text() + ": index fewer");
  key.rest = x.rank() - taken;
  return key;
}

// --- What a key chooses.

// A tensor of the key, and the axes it indexes.
struct Pick {
  int axis, axes;
  Tensor tensor;
};
// A view of x by all items of a key except tensors, and the axes of the view with the key's tensors.
struct Choice {
  Tensor view;
  std::vector<Pick> picks;
};

Tensor sliced(const Tensor& x, int axis, const Slice& s) {
  const bool back = s.step < 0;
  return slice(x, axis, s.start.value_or(back ? INT64_MAX : 0), s.end.value_or(back ? INT64_MIN : INT64_MAX), s.step);
}

void require_extents(const Tensor& view, int axis, const Tensor& mask) {
  for (int i = 0; i < mask.rank(); ++i)
    if (mask.size(i) != view.size(axis + i))
      refuse_index("a mask of shape " + mask.shape().text() + " does not fit x, whose axis has " +
                   std::to_string(view.size(axis + i)) + " elements where the mask has " + std::to_string(mask.size(i)) +
                   ": they must be equal");
}

Choice chosen(const Tensor& x, const Key& key) {
  Choice choice{x, {}};
  Tensor& view = choice.view;
  int axis = 0;
  for (const Index& item : key.items) {
    if (const int64_t* number = as<int64_t>(item)) {
      view = select(view, axis, *number);
    } else if (const Slice* range = as<Slice>(item)) {
      view = sliced(view, axis++, *range);
    } else if (as<Ellipsis>(item)) {
      axis += key.rest;
    } else {
      const Tensor* tensor = tensor_of(item);
      const int taken = axes_taken(item);
      if (!taken) view = unsqueeze(view, axis);
      if (tensor && is_mask(*tensor)) require_extents(view, axis, *tensor);
      if (tensor) choice.picks.push_back({axis, std::max(taken, 1), *tensor});
      axis += std::max(taken, 1);
    }
  }
  return choice;
}

// The part of a tensor chosen by all items of a key except tensors, with its axes permuted unless `order` is empty.
struct BasicPart {
  Key key;
  Shape order;
  Tensor operator()(const Tensor& x) const {
    const Tensor view = chosen(x, key).view;
    return order.empty() ? view : permute(view, order);
  }
};

// --- Indexed axes.

// A view with its indexed axes side by side, and the key's positions along them.
struct IndexPlan {
  Tensor view;
  Shape order;       // of the choice's axes in this view; empty: unchanged
  int axis, axes;    // the indexed axes of this view: the first, and their number
  Tensor positions;  // i64, rank 1, along the indexed axes flattened
  Shape shape;       // of the axes that replace the indexed axes
};

int64_t extent_of(const Tensor& x, int axis, int axes) {
  int64_t extent = 1;
  for (int i = 0; i < axes; ++i) extent *= x.size(axis + i);
  return extent;
}

// x's shape with the extents `by` in place of `axes` axes from `axis` on.
Shape with_extents(const Tensor& x, int axis, int axes, const Shape& by) {
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.size(i));
  for (const int64_t extent : by) shape.push_back(extent);
  for (int i = axis + axes; i < x.rank(); ++i) shape.push_back(x.size(i));
  return shape;
}

// An order with the picks' axes in front; empty if they are side by side.
Shape order_of(const Choice& choice) {
  Shape order;
  bool together = true;
  for (size_t i = 0; i < choice.picks.size(); ++i) {
    const Pick& pick = choice.picks[i];
    if (i) together = together && choice.picks[i - 1].axis + choice.picks[i - 1].axes == pick.axis;
    for (int axis = pick.axis; axis < pick.axis + pick.axes; ++axis) order.push_back(axis);
  }
  if (together) return {};
  for (int axis = 0; axis < choice.view.rank(); ++axis)
    if (std::ranges::find(order, axis) == order.end()) order.push_back(axis);
  return order;
}

Tensor flat(const Tensor& x) { return reshape(x, {x.count()}); }

// The positions of a pick along its flattened axes, in a shape for broadcasting.
Tensor positions_of(const Pick& pick, int64_t extent) {
  return is_mask(pick.tensor) ? true_positions(flat(pick.tensor)) : wrap_indices(pick.tensor, extent);
}

Shape common_shape(const std::vector<Tensor>& indices) {
  Shape shape;
  for (const Tensor& each : indices) try {
      shape = broadcast_shapes(shape, each.shape());
    } catch (const Error&) {
      refuse_index("indices of shapes " + shape.text() + " and " + each.shape().text() +
                   " do not broadcast; a mask counts as the list of its true elements");
    }
  return shape;
}

// Positions along several flattened axes. gather reads the offsets from tables of multiples and thus checks each index.
Tensor combined(const Choice& choice, const std::vector<Tensor>& indices, const Shape& shape) {
  if (!shape.count()) return zeros({0}, DType::i64, choice.view.device());
  int64_t stride = 1;
  for (const Pick& pick : choice.picks) stride *= extent_of(choice.view, pick.axis, pick.axes);
  const DType dtype = position_dtype(choice.view, stride);
  Tensor sums;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t extent = extent_of(choice.view, choice.picks[i].axis, choice.picks[i].axes);
    stride = std::max<int64_t>(stride / std::max<int64_t>(extent, 1), 1);
    const Tensor table = arange(0, extent * stride, stride, dtype, choice.view.device());
    const Tensor offsets = reshape(gather(table, 0, flat(indices[i])), indices[i].shape());
    sums = sums.defined() ? add(sums, offsets) : offsets;
  }
  return cast(sums, DType::i64);
}

IndexPlan planned(const Choice& choice) {
  std::vector<Tensor> indices;
  for (const Pick& pick : choice.picks) indices.push_back(positions_of(pick, extent_of(choice.view, pick.axis, pick.axes)));
  const Shape shape = common_shape(indices), order = order_of(choice);
  int axes = 0;
  for (const Pick& pick : choice.picks) axes += pick.axes;
  const bool checked_later = indices.size() == 1 && choice.view.count();
  const Tensor positions = checked_later ? indices[0] : combined(choice, indices, shape);
  return {order.empty() ? choice.view : permute(choice.view, order),
          order,
          order.empty() ? choice.picks[0].axis : 0,
          axes,
          flat(positions),
          shape};
}

// The view with its indexed axes flattened.
Tensor merged(const IndexPlan& plan) {
  if (plan.axes == 1) return plan.view;
  return reshape(plan.view, with_extents(plan.view, plan.axis, plan.axes, {extent_of(plan.view, plan.axis, plan.axes)}));
}

// A tensor of rank 1 along an axis, expanded to the remaining extents of x.
Tensor spread(const Tensor& x, int axis, const Tensor& numbers) {
  Shape along(std::vector<int64_t>(static_cast<size_t>(x.rank()), 1));
  along[static_cast<size_t>(axis)] = numbers.count();
  return expand(reshape(numbers, along), with_extents(x, axis, 1, {numbers.count()}));
}

// --- Writing.

// value with rank 0, or in the shape of x[key].
Tensor broadcast_value(const Tensor& value, const Tensor& x, const Shape& shape) {
  Tensor fits = cast(to(value, x.device()), x.dtype());
  while (fits.rank() && fits.size(0) == 1 && (fits.rank() > shape.rank() || fits.count() == 1)) fits = select(fits, 0, 0);
  if (!fits.rank()) return fits;
  try {
    return expand(fits, shape);
  } catch (const Error&) {
    refuse("index_put", "a value of shape " + value.shape().text() + " does not broadcast to " + shape.text() +
                            ", which the key chooses: give a value of that shape");
  }
}

Tensor added(const Tensor& into, const IndexPlan& plan, const Tensor& value) {
  if (is_mask(into)) return cast(added(cast(into, DType::i64), plan, cast(value, DType::i64)), DType::boolean);
  const Tensor index = spread(into, plan.axis, plan.positions);
  return scatter_add(into, plan.axis, index, reshape(value, index.shape()));
}

Tensor overwritten(const Tensor& into, const IndexPlan& plan, const Tensor& value) {
  const Writers writers = last_writers(plan.positions, 0, into.size(plan.axis));
  const Tensor written = spread(into, plan.axis, writers.written);
  if (!value.rank()) return where(written, value, into);
  const Tensor values = reshape(value, with_extents(into, plan.axis, 1, {plan.positions.count()}));
  return where(written, gather(values, plan.axis, spread(into, plan.axis, writers.number)), into);
}

// The plan's view with the value written at the key's positions.
Tensor written(const IndexPlan& plan, const Tensor& value, bool accumulate) {
  const Shape shape = with_extents(plan.view, plan.axis, plan.axes, plan.shape);
  Tensor fits = broadcast_value(value, plan.view, shape);
  const bool adds = accumulate || !shape.count();  // adding nothing needs no elements to read
  if (adds && !fits.rank()) fits = expand(fits, shape);
  const Tensor into = merged(plan);
  return reshape(adds ? added(into, plan, fits) : overwritten(into, plan, fits), plan.view.shape());
}

// The same for a key without tensors.
Tensor written(const Tensor& view, const Tensor& value, bool accumulate) {
  const Tensor fits = expand(broadcast_value(value, view, view.shape()), view.shape());
  return accumulate ? add(view, fits) : fits;
}

// Whether the write is of a single element with a mask as the key's only tensor: where() needs no positions.
bool is_masked_fill(const Choice& choice, const Tensor& value, bool accumulate) {
  return choice.picks.size() == 1 && is_mask(choice.picks[0].tensor) && value.count() == 1 && !accumulate;
}

Tensor filled_where(const Choice& choice, const Tensor& value) {
  const Pick& pick = choice.picks[0];
  Shape shape = with_extents(choice.view, pick.axis, pick.axes, pick.tensor.rank() ? pick.tensor.shape() : Shape{1});
  for (int i = 0; i < choice.view.rank(); ++i)
    if (i < pick.axis || i >= pick.axis + pick.axes) shape[static_cast<size_t>(i)] = 1;
  return where(reshape(pick.tensor, shape), broadcast_value(value, choice.view, {}), choice.view);
}

bool chooses_elements(const Index& item) { return tensor_of(item) || as<bool>(item); }

// The new elements of a key's basic part, and the part.
struct Write {
  Tensor result;
  BasicPart part;
};

Write write_of(const Tensor& x, const std::vector<Index>& items, const Tensor& value, bool accumulate) {
  const Key key = resolved(x, items);
  const Choice choice = chosen(x, key);
  if (choice.picks.empty()) return {written(choice.view, value, accumulate), {key, {}}};
  if (is_masked_fill(choice, value, accumulate)) return {filled_where(choice, value), {key, {}}};
  const IndexPlan plan = planned(choice);
  return {written(plan, value, accumulate), {key, plan.order}};
}
}  // namespace

Tensor index(const Tensor& x, const std::vector<Index>& items) {
  const Choice choice = chosen(x, resolved(x, items));
  if (choice.picks.empty()) return choice.view;
  const IndexPlan plan = planned(choice);
  const Tensor from = merged(plan);
  const Tensor picked = gather(from, plan.axis, spread(from, plan.axis, plan.positions));
  return reshape(picked, with_extents(plan.view, plan.axis, plan.axes, plan.shape));
}

Tensor index_put(const Tensor& x, const std::vector<Index>& items, const Tensor& value, bool accumulate) {
  require_defined(value, "index_put");
  const Write write = write_of(x, items, value, accumulate);
  return replaced(x, write.result, write.part);
}

void index_put_(Tensor& x, const std::vector<Index>& items, const Tensor& value, bool accumulate) {
  require_writable(x, "index_put_");
  require_defined(value, "index_put_");
  const Write write = write_of(x, items, value, accumulate);
  replace(x, write.result, write.part);
}

void index_put_(Tensor& x, const std::vector<Index>& items, Number value, bool accumulate) {
  require_writable(x, "index_put_");
  if (!accumulate && std::ranges::none_of(items, chooses_elements))
    return replace(x, value, BasicPart{resolved(x, items), {}});
  index_put_(x, items, scalar(value, x.dtype(), x.device()), accumulate);
}

}  // namespace plugrad
