#include <plugrad/nn/value.hpp>

#include <core/autograd/node.hpp>
#include <core/nn/layer_matrix.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>

#include <algorithm>
#include <ostream>

namespace plugrad {
namespace {
// Ops of Values keep operands and gradients, so that the graph can be inspected.
class Retaining {
 public:
  Retaining() : before_(local().mode) { local().mode |= kRetaining; }
  ~Retaining() { local().mode = before_; }
  Retaining(const Retaining&) = delete;
  Retaining& operator=(const Retaining&) = delete;

 private:
  uint32_t before_;
};

Node& node_of(const Value& v) {
  if (!v.tensor().defined() || !v.tensor().impl().node)
    throw Error(Code::invalid, "[value] this value was computed while recording was off: it is not in a graph");
  return *v.tensor().impl().node;
}
}  // namespace

Value::Value(double data, Device device) : tensor_(full({}, data, DType::f64, device)) { tensor_.requires_grad_(); }

void Value::set_data(double data) {
  const NoGrad unrecorded;
  tensor_.fill_(data);
}
double Value::grad() const {
  const Tensor grad = tensor_.grad();
  return grad.defined() ? grad.item<double>() : 0.0;
}
void Value::set_grad(double grad) { tensor_.set_grad(full_like(tensor_.detach(), grad)); }
void Value::backward() const { tensor_.backward({}, {.retain_graph = true}); }

std::vector<Value> Value::previous() const {
  std::vector<Value> operands;
  const Node& node = node_of(*this);
  if (is_spread(node)) return values_behind(node);
  for (size_t i = 0; i < node.operands; ++i)
    if (node.saved[i].defined()) operands.emplace_back(node.saved[i]);
  return operands;
}

std::string Value::label() const {
  const Node& node = node_of(*this);
  return node.more ? node.more->title : std::string();
}
Value& Value::set_label(const std::string& label) {
  node_of(*this).extra().title = label;
  return *this;
}

void* Value::face() const {
  const Node* node = tensor_.impl().node.get();
  return node ? node->attached : nullptr;
}
void Value::set_face(void* face) const {
  if (Node* node = tensor_.impl().node.get()) node->attached = face;
}

Value operator+(const Value& a, const Value& b) {
  const Retaining graph;
  return Value(add(a.tensor(), b.tensor()));
}
Value operator-(const Value& a, const Value& b) {
  const Retaining graph;
  return Value(sub(a.tensor(), b.tensor()));
}
Value operator*(const Value& a, const Value& b) {
  const Retaining graph;
  return Value(mul(a.tensor(), b.tensor()));
}
Value operator/(const Value& a, const Value& b) {
  const Retaining graph;
  return Value(div(a.tensor(), b.tensor()));
}
Value operator-(const Value& x) {
  const Retaining graph;
  return Value(neg(x.tensor()));
}
Value pow(const Value& x, double exponent) {
  const Retaining graph;
  return Value(pow(x.tensor(), exponent));
}
Value relu(const Value& x) {
  const Retaining graph;
  return Value(relu(x.tensor()));
}
Value tanh(const Value& x) {
  const Retaining graph;
  return Value(tanh(x.tensor()));
}
Value exp(const Value& x) {
  const Retaining graph;
  return Value(exp(x.tensor()));
}
Value log(const Value& x) {
  const Retaining graph;
  return Value(log(x.tensor()));
}
Value to(const Value& x, Device device) {
  const Retaining graph;
  return Value(to(x.tensor(), device));
}

std::ostream& operator<<(std::ostream& out, const Value& value) {
  return out << "Value(data=" << value.data() << ", grad=" << value.grad() << ')';
}

// --- Networks of Values.

Neuron::Neuron(int64_t nin, bool nonlinear, Device device) : b(0.0, device), nonlin(nonlinear) {
  for (double weight : rand({nin}, DType::f64, device, -1, 1).to_vector<double>()) w.emplace_back(weight, device);
}

Value Neuron::operator()(const std::vector<Value>& x) const {
  if (x.size() != w.size())
    throw Error(Code::invalid,
                "[neuron] " + std::to_string(x.size()) + " values for " + std::to_string(w.size()) + " weights");
  Value sum = b;
  for (size_t i = 0; i < w.size(); ++i) sum = sum + w[i] * x[i];
  return nonlin ? relu(sum) : sum;
}

std::vector<Value> Neuron::parameters() const {
  std::vector<Value> all = w;
  all.push_back(b);
  return all;
}

std::string Neuron::text() const { return (nonlin ? "ReLUNeuron(" : "LinearNeuron(") + std::to_string(w.size()) + ")"; }

namespace {
template <class Parts> std::vector<Value> all_parameters(const Parts& parts) {
  std::vector<Value> all;
  for (const auto& part : parts)
    for (Value& each : part.parameters()) all.push_back(std::move(each));
  return all;
}
template <class Parts> std::string list_text(const char* name, const Parts& parts) {
  std::string text = std::string(name) + " of [";
  for (const auto& part : parts) text += (&part == &parts.front() ? "" : ", ") + part.text();
  return text + "]";
}
}  // namespace

Layer::Layer(int64_t nin, int64_t nout, bool nonlin, Device device) : matrix_(std::make_shared<LayerMatrix>()) {
  for (int64_t i = 0; i < nout; ++i) neurons.emplace_back(nin, nonlin, device);
}

// relu(W x + b) or W x + b, for x of rank 1; undefined if the neurons form no matrix, or if it does not fit x.
Tensor Layer::matrix_product(const Tensor& x) const {
  const auto [weights, biases] = matrix_->parameters(neurons);
  if (!weights.defined() || weights.size(1) != x.size(0) || weights.device() != x.device()) return {};
  const Tensor sums = add(matmul(weights, x), biases);
  return neurons.front().nonlin ? relu(sums) : sums;
}

namespace {
// Returns an undefined tensor if x is empty or its values are on different devices.
Tensor gathered(const std::vector<Value>& x) {
  if (x.empty()) return {};
  std::vector<Tensor> tensors;
  for (const Value& each : x) tensors.push_back(each.tensor());
  const bool together =
      std::ranges::all_of(tensors, [&](const Tensor& t) { return t.device() == tensors.front().device(); });
  return together ? gather_values(tensors) : Tensor();
}
}  // namespace

std::vector<Value> Layer::operator()(const std::vector<Value>& x) const {
  if (const Tensor in = gathered(x); in.defined())
    if (const Tensor out = matrix_product(in); out.defined()) return spread_values(out);
  std::vector<Value> out;
  for (const Neuron& neuron : neurons) out.push_back(neuron(x));
  return out;
}
std::vector<Value> Layer::parameters() const { return all_parameters(neurons); }
std::string Layer::text() const { return list_text("Layer", neurons); }

MLP::MLP(int64_t nin, const std::vector<int64_t>& nouts, Device device) {
  for (size_t i = 0; i < nouts.size(); ++i)
    layers.emplace_back(i ? nouts[i - 1] : nin, nouts[i], i + 1 < nouts.size(), device);
}

std::vector<Value> MLP::operator()(const std::vector<Value>& x) const {
  Tensor product = gathered(x);
  for (size_t i = 0; i < layers.size() && product.defined(); ++i) product = layers[i].matrix_product(product);
  if (product.defined() && !layers.empty()) return spread_values(product);
  std::vector<Value> out = x;
  for (const Layer& layer : layers) out = layer(out);
  return out;
}
std::vector<Value> MLP::parameters() const { return all_parameters(layers); }
void MLP::zero_grad() {
  for (Value& each : all_parameters(layers)) Tensor(each.tensor()).clear_grad();
}
std::string MLP::text() const { return list_text("MLP", layers); }

}  // namespace plugrad
