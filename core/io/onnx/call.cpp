#include <core/io/onnx/run.hpp>
#include <core/io/quote.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>

namespace plugrad::io::onnx {

Device Call::device() const { return run_.device(); }
int64_t Call::opset() const { return node_.opset; }
bool Call::node_is(std::string_view op) const { return node_.op_name == op; }

const Value& Call::value(size_t i) const {
  if (has(i)) return inputs_[i];
  throw Error(Code::invalid, "input " + std::to_string(i) + " is missing");
}

const Tensor& Call::tensor(size_t i) const {
  const Value& found = value(i);
  if (found.tensor.defined()) return found.tensor;
  throw Error(Code::invalid, "input " + std::to_string(i) + " is a sequence; a tensor is expected");
}

const std::vector<Value>& Call::sequence(size_t i) const {
  const Value& found = value(i);
  if (found.sequence) return *found.sequence;
  throw Error(Code::invalid, "input " + std::to_string(i) + " is a tensor; a sequence is expected");
}

void Call::note_read() const {
  if (!constant_) run_.note_read(node_);
}

Value raised(Value value, Level level) {
  value.level = std::max(value.level, level);
  if (!value.sequence) return value;
  Values elements;
  for (const Value& each : *value.sequence) elements.push_back(raised(each, level));
  value.sequence = std::make_shared<const Values>(std::move(elements));
  return value;
}

int64_t Call::positive(int64_t number, const char* name) {
  if (number >= 1 && number <= int64_t{1} << 31) return number;
  throw Error(Code::invalid, std::string(name) + " is " + std::to_string(number) + "; 1 to 2^31 is expected");
}

int64_t Call::countable(double elements) {
  constexpr double kMost = 1 << 28;
  if (elements >= 0 && elements <= kMost) return static_cast<int64_t>(elements);
  throw Error(Code::unsupported,
              "it would make " + std::to_string(elements) + " elements on the host; at most 2^28 are supported");
}

namespace {
void require_tensor(const Value& value) {
  if (!value.tensor.defined()) throw Error(Code::invalid, "a tensor is expected in place of a sequence or an absent value");
}
}  // namespace

std::vector<int64_t> Call::host_integers(const Value& value) const {
  require_tensor(value);
  if (value.level == Level::data) note_read();
  const auto read = [&] { return cast(value.tensor, DType::i64).to_vector<int64_t>(); };
  return value.host ? value.host->integers(read) : read();
}

std::vector<double> Call::host_reals(const Value& value) const {
  require_tensor(value);
  if (value.level == Level::data) note_read();
  const auto read = [&] { return cast(value.tensor, DType::f64).to_vector<double>(); };
  return value.host ? value.host->reals(read) : read();
}

int64_t Call::integer(size_t i) const { return integers(i).at(0); }
double Call::real(size_t i) const { return reals(i).at(0); }

size_t Call::outputs() const { return node_.outputs.size(); }
bool Call::wants(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kAbsent; }

const AttributeMessage* Call::find(std::string_view name) const {
  for (const AttributeMessage& each : node_.attributes)
    if (each.name == name) {
      read_.insert(&each);
      return &each;
    }
  return nullptr;
}

void Call::refuse_unread_attributes() const {
  // Hints of precision, and a number that stands for minus infinity.
  constexpr std::string_view kHints[] = {"accuracy_level", "mask_filter_value", "kernel_shape", "momentum"};
  for (const AttributeMessage& each : node_.attributes) {
    const bool empty = !each.integer && each.real == 0 && each.text.empty() && each.integers.empty() && each.reals.empty();
    if (read_.contains(&each) || empty || std::ranges::find(kHints, each.name) != std::end(kHints)) continue;
    throw Error(Code::unsupported, "the attribute " + quote(each.name) + " is not supported");
  }
}

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const AttributeMessage* found = find(name);
  return found ? found->integer : otherwise;
}

double Call::real(std::string_view name, double otherwise) const {
  const AttributeMessage* found = find(name);
  return found ? static_cast<double>(found->real) : otherwise;
}

std::string Call::text(std::string_view name, const std::string& otherwise) const {
  const AttributeMessage* found = find(name);
  return found ? found->text : otherwise;
}

std::vector<int64_t> Call::integers(std::string_view name) const {
  const AttributeMessage* found = find(name);
  return found ? found->integers : std::vector<int64_t>();
}

std::vector<double> Call::reals(std::string_view name) const {
  const AttributeMessage* found = find(name);
  return found ? std::vector<double>(found->reals.begin(), found->reals.end()) : std::vector<double>();
}

std::vector<std::string> Call::texts(std::string_view name) const {
  const AttributeMessage* found = find(name);
  return found ? found->texts : std::vector<std::string>();
}

Tensor Call::tensor_attribute(std::string_view name, ElementType& type) const {
  const AttributeMessage* found = find(name);
  if (!found || found->tensors.empty()) throw Error(Code::invalid, "the attribute " + std::string(name) + " is missing");
  type = static_cast<ElementType>(found->tensors[0].type);
  return read_tensor(run_.file(), found->tensors[0], device());
}

const Graph& Call::graph(std::string_view name) const {
  for (const auto& [attribute, graph] : node_.graphs)
    if (attribute == name) return *graph;
  throw Error(Code::invalid, "the attribute " + std::string(name) + " is missing");
}

Value Call::as(const Tensor& result, ElementType type) const {
  const DType dtype = carrier_of(type);
  Tensor x = wrapped(result, type);
  return Value(x.dtype() == dtype ? x : cast(x, dtype), type);
}

Tensor Call::made(const std::function<Tensor()>& make) const { return constant_ ? make() : run_.made(make); }

Tensor Call::made(const std::vector<int64_t>& numbers, const Shape& shape) const {
  return made([&] { return Tensor::from<int64_t>(numbers, shape, device()); });
}

Tensor Call::made(const std::vector<double>& numbers, const Shape& shape, DType dtype) const {
  return made([&] { return cast(Tensor::from<double>(numbers, shape, device()), dtype); });
}

Tensor Call::arange(int64_t end) const { return plugrad::arange(0, end, 1, DType::i64, device()); }

Tensor Call::prepared(std::initializer_list<size_t> inputs, const std::function<Tensor()>& make,
                      std::initializer_list<size_t> shapes_of) const {
  Level level = Level::file;
  for (const size_t i : inputs)
    if (has(i)) level = std::max(level, inputs_[i].level);
  for (const size_t i : shapes_of)
    if (has(i)) level = std::max(level, std::min(inputs_[i].level, Level::shapes));
  if (constant_ || level == Level::data) return make();
  return level == Level::shapes ? run_.made(make) : run_.prepared(node_, make);
}

int Call::axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw Error(Code::invalid, "axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) + " axes");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace plugrad::io::onnx
