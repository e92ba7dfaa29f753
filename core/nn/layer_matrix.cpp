#include <core/nn/layer_matrix.hpp>

#include <core/ops/run.hpp>
#include <core/ops/slicing.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <unordered_set>

namespace plugrad {
namespace {
// Returns a view of an element, of rank 0.
plugrad_view element_view(const Tensor& x, int64_t i) {
  plugrad_view v = view_of(x);
  v.offset += static_cast<uint64_t>(i * v.strides[0] * static_cast<int64_t>(dtype_size(v.dtype)));
  v.rank = 0;
  set_layout(v, device_of(x).info.alignment);
  return v;
}

constexpr auto kElement = rule("layer", gradient<kShape, kPayload>([](const Tensor& grad, const Shape& whole, int64_t i) {
                                 const Tensor one = reshape(grad, {1});
                                 return whole[0] == 1 ? one : place(one, whole, {0, i, 1, 1});
                               }));

Tensor element(const Tensor& x, int64_t i) { return differentiable(kElement, i, with_view(x, element_view(x, i)), x); }

// The payload of kGathered: the tensors gathered into the node.
using Gathered = std::vector<Tensor>;
constexpr auto kGathered =
    rule_of_many("gather", gradient<kPosition, kPayload>([](const Tensor& grad, size_t i, const Gathered&) {
                   return element(grad, static_cast<int64_t>(i));
                 }));
}  // namespace

Tensor gather_values(const std::vector<Tensor>& values) {
  DeviceState& device = device_of(values.front());
  const uint8_t dtype = dtype_of(values.front());
  Tensor out = empty(device, {static_cast<int64_t>(values.size())}, dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    const plugrad_view part = element_view(out, static_cast<int64_t>(i));
    run(Op::COPY, {operand(out, part)}, {values[i]});
  }
  record_many(kGathered, out, values, values);
  return out;
}

std::vector<Value> spread_values(const Tensor& x) {
  std::vector<Value> values;
  for (int64_t i = 0; i < x.size(0); ++i) {
    Tensor each = element(x, i);
    if (each.requires_grad()) each.retain_grad();
    values.emplace_back(std::move(each));
  }
  return values;
}

bool is_spread(const Node& node) { return node.rule == &kElement; }

std::vector<Value> values_behind(const Node& node) {
  std::vector<Value> found;
  std::vector<const Node*> open{&node};
  std::unordered_set<const Node*> seen;
  while (!open.empty()) {
    const Node* each = open.back();
    open.pop_back();
    if (!seen.insert(each).second) continue;
    if (each->rule == &kGathered) {
      for (const Tensor& value : static_cast<const PayloadOf<Gathered>&>(*each->payload).value) found.emplace_back(value);
      continue;
    }
    for (const Ref<Node>& edge : each->edges())
      if (edge) open.push_back(edge.get());
  }
  return found;
}

bool LayerMatrix::is_current(const std::vector<Leaf>& leaves) const {
  if (!kept_.weights.defined() || leaves != leaves_) return false;
  const Node* node = kept_.weights.impl().node.get();
  return node ? !(node->flags & Node::kSpent) : !recording();
}

std::vector<LayerMatrix::Leaf> LayerMatrix::leaves_of(const std::vector<Neuron>& neurons) {
  if (neurons.empty() || neurons.front().w.empty()) return {};
  const Neuron& first = neurons.front();
  const DeviceState* device = &device_of(first.b.tensor());
  std::vector<Leaf> leaves;
  const auto fits = [&](const Value& v) {
    leaves.push_back({v.tensor().impl().node.get(), storage_of(v.tensor())->version});
    return &device_of(v.tensor()) == device;
  };
  for (const Neuron& each : neurons) {
    const bool alike = each.w.size() == first.w.size() && each.nonlin == first.nonlin;
    if (!alike || !std::ranges::all_of(each.w, fits) || !fits(each.b)) return {};
  }
  return leaves;
}

LayerMatrix::Parameters LayerMatrix::gathered(const std::vector<Neuron>& neurons) {
  std::vector<Tensor> weights, biases;
  for (const Neuron& each : neurons) {
    for (const Value& weight : each.w) weights.push_back(weight.tensor());
    biases.push_back(each.b.tensor());
  }
  const int64_t nout = static_cast<int64_t>(neurons.size());
  return {reshape(gather_values(weights), {nout, -1}), gather_values(biases)};
}

LayerMatrix::Parameters LayerMatrix::parameters(const std::vector<Neuron>& neurons) {
  std::vector<Leaf> leaves = leaves_of(neurons);
  if (leaves.empty()) return {};
  const std::unique_lock lock(mutex_, std::try_to_lock);
  const bool current = lock && is_current(leaves);
  if (current && owner_ == std::this_thread::get_id()) return kept_;
  Parameters made = gathered(neurons);
  if (lock && !current) {
    kept_ = made;
    leaves_ = std::move(leaves);
    owner_ = std::this_thread::get_id();
  }
  return made;
}

}  // namespace plugrad
