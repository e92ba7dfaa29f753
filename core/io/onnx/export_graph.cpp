#include <core/io/onnx/export_graph.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <numeric>

namespace plugrad::io::onnx {
namespace {

int64_t element_code(DType dtype) { return static_cast<int64_t>(element_type_of(dtype)); }

std::string tensor_fields(const std::string& name, const Shape& shape, DType dtype) {
  std::string bytes;
  for (const int64_t each : shape) bytes += integer_field(1, each);
  return bytes + integer_field(2, element_code(dtype)) + text_field(8, name);
}

// Whether elements of these extents and strides follow each other without gaps.
bool is_dense(const Shape& shape, const Shape& strides) {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0; expected *= shape[d])
    if (shape[d] != 1 && strides[d] != expected) return false;
  return true;
}

std::vector<int64_t> list_of(const Shape& shape) { return {shape.begin(), shape.end()}; }
}  // namespace

ExportGraph::ExportGraph(const ModelContents& model, const std::vector<Tensor>& weights)
    : model_(model), weights_(weights), memories_(model.memories.size()) {
  for (size_t i = 0; i < memories_.size(); ++i) {
    if (!weights[i].defined()) continue;
    const Shape shape{model.memories[i].count};
    memories_[i] = {"weight" + std::to_string(i), shape};
    tensors_.push_back({tensor_fields(memories_[i].value, shape, model.memories[i].dtype), "", weights[i]});
  }
  for (size_t i = 0; i < model.inputs.size(); ++i)
    memories_[model.inputs[i].memory] = {"input" + std::to_string(i), model.inputs[i].shape};
}

std::vector<std::string> ExportGraph::nodes(const std::string& op, const std::vector<std::string>& inputs, size_t outputs,
                                            const std::string& attributes) {
  std::string bytes;
  for (const std::string& each : inputs) bytes += text_field(1, each);
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) names.push_back(fresh());
  for (const std::string& each : names) bytes += text_field(2, each);
  nodes_ += text_field(1, bytes + text_field(3, op + "_" + names[0]) + text_field(4, op) + attributes);
  return names;
}

std::string ExportGraph::node(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes) {
  return nodes(op, inputs, 1, attributes)[0];
}

std::string ExportGraph::kept(const Shape& shape, DType dtype, std::string bytes) {
  const auto [found, is_new] = constants_.try_emplace(dtype_name(dtype) + shape.text() + bytes);
  if (!is_new) return found->second;
  found->second = "c" + std::to_string(constants_.size());
  tensors_.push_back({tensor_fields(found->second, shape, dtype), std::move(bytes), {}});
  return found->second;
}

std::string ExportGraph::integers(const std::vector<int64_t>& numbers) {
  const auto* data = reinterpret_cast<const char*>(numbers.data());
  return kept({static_cast<int64_t>(numbers.size())}, DType::i64, std::string(data, numbers.size() * sizeof(int64_t)));
}

std::string ExportGraph::constant(const std::vector<double>& numbers, const Shape& shape, DType dtype) {
  const Tensor made = cast(Tensor::from<double>(numbers, shape), dtype);
  std::string bytes(static_cast<size_t>(made.count() * item_size(dtype)), '\0');
  made.copy_to_host(bytes.data());
  return kept(shape, dtype, std::move(bytes));
}

std::string ExportGraph::number(Number number, DType dtype) {
  if (number.floating()) return constant({number.real()}, {}, dtype);
  const Tensor made = cast(Tensor::from<int64_t>({number.integer()}, {}), dtype);
  std::string bytes(static_cast<size_t>(item_size(dtype)), '\0');
  made.copy_to_host(bytes.data());
  return kept({}, dtype, std::move(bytes));
}

std::string ExportGraph::reshaped(const std::string& value, const Shape& shape) {
  return node("Reshape", {value, integers(list_of(shape))}, attribute("allowzero", int64_t{1}));
}

std::string ExportGraph::sliced(const std::string& value, int axis, int64_t begin, int64_t end) {
  return node("Slice", {value, integers({begin}), integers({end}), integers({axis})});
}

// A memory as one axis, zeros where nothing was written.
std::string ExportGraph::flat(uint32_t memory) {
  Memory& it = memories_[memory];
  const Shape shape{model_.memories[memory].count};
  if (it.value.empty()) return node("Expand", {number(0, model_.memories[memory].dtype), integers(list_of(shape))});
  return it.shape == shape ? it.value : reshaped(it.value, shape);
}

// A view whose axes are those of a dense part in another order, or repeat elements.
std::string ExportGraph::read_permuted(const ModelView& view, bool& found) {
  std::vector<size_t> axes;
  for (size_t d = 0; d < view.shape.size(); ++d)
    if (view.shape[d] != 1 && view.strides[d] != 0) axes.push_back(d);
  std::vector<size_t> order = axes;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return view.strides[a] > view.strides[b]; });
  Shape shape, strides, kept_axes, with_ones;
  for (const size_t d : order) {
    shape.push_back(view.shape[d]);
    strides.push_back(view.strides[d]);
  }
  found = is_dense(shape, strides);
  if (!found) return "";
  std::string value = flat(view.memory);
  if (shape.count() != model_.memories[view.memory].count)
    value = sliced(value, 0, view.offset, view.offset + shape.count());
  value = reshaped(value, shape);
  std::vector<int64_t> permutation;
  for (const size_t d : axes) permutation.push_back(std::ranges::find(order, d) - order.begin());
  if (!std::ranges::is_sorted(permutation)) value = node("Transpose", {value}, attribute("perm", permutation));
  for (size_t d = 0; d < view.shape.size(); ++d)
    with_ones.push_back(std::ranges::find(axes, d) != axes.end() ? view.shape[d] : 1);
  value = reshaped(value, with_ones);
  return with_ones == view.shape ? value : node("Expand", {value, integers(list_of(view.shape))});
}

// The position in its memory of each element of a view.
std::string ExportGraph::places(const ModelView& view) {
  std::vector<int64_t> all{view.offset};
  for (size_t d = 0; d < view.shape.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t each : all)
      for (int64_t i = 0; i < view.shape[d]; ++i) next.push_back(each + i * view.strides[d]);
    all = std::move(next);
  }
  return integers(all);
}

std::string ExportGraph::read(const ModelView& view) {
  const Memory& it = memories_[view.memory];
  const int64_t count = view.shape.count();
  if (is_dense(view.shape, view.strides)) {
    if (count == model_.memories[view.memory].count && !it.value.empty())
      return it.shape == view.shape ? it.value : reshaped(it.value, view.shape);
    return reshaped(sliced(flat(view.memory), 0, view.offset, view.offset + count), view.shape);
  }
  bool found = false;
  const std::string permuted = read_permuted(view, found);
  if (found) return permuted;
  return reshaped(node("Gather", {flat(view.memory), places(view)}), view.shape);
}

void ExportGraph::write(const ModelView& view, const std::string& value) {
  const int64_t count = model_.memories[view.memory].count, size = view.shape.count();
  const bool dense = is_dense(view.shape, view.strides);
  if (dense && size == count) {
    memories_[view.memory] = {value, view.shape};
    return;
  }
  const std::string old = flat(view.memory), part = reshaped(value, {size});
  if (!dense) {
    memories_[view.memory] = {node("ScatterElements", {old, places(view), part}, attribute("axis", int64_t{0})), {count}};
    return;
  }
  std::vector<std::string> parts;
  if (view.offset) parts.push_back(sliced(old, 0, 0, view.offset));
  parts.push_back(part);
  if (view.offset + size < count) parts.push_back(sliced(old, 0, view.offset + size, count));
  memories_[view.memory] = {node("Concat", parts, attribute("axis", int64_t{0})), {count}};
}

void ExportGraph::add_outputs() {
  for (size_t i = 0; i < model_.outputs.size(); ++i) {
    const std::string value = read(model_.outputs[i]), name = "output" + std::to_string(i);
    nodes_ += text_field(
        1, text_field(1, value) + text_field(2, name) + text_field(3, "Identity_" + name) + text_field(4, "Identity"));
  }
}

std::string ExportGraph::value_info(uint64_t field, const std::string& name, const ModelView& view) const {
  std::string shape;
  for (const int64_t each : view.shape) shape += text_field(1, integer_field(1, each));
  const std::string type = integer_field(1, element_code(dtype(view))) + text_field(2, shape);
  return text_field(field, text_field(1, name) + text_field(2, text_field(1, type)));
}

std::string ExportGraph::inputs_and_outputs() const {
  std::string bytes;
  for (size_t i = 0; i < model_.inputs.size(); ++i) bytes += value_info(11, "input" + std::to_string(i), model_.inputs[i]);
  for (size_t i = 0; i < model_.outputs.size(); ++i)
    bytes += value_info(12, "output" + std::to_string(i), model_.outputs[i]);
  return bytes;
}

}  // namespace plugrad::io::onnx
