#include <core/io/onnx/ops/tables.hpp>
#include <core/io/onnx/run.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>

namespace plugrad::io::onnx {
namespace {

// A place in a sequence of `count`, or one past its end if that is allowed.
size_t sequence_place(int64_t at, size_t count, bool end_allowed) {
  const int64_t size = static_cast<int64_t>(count), place = at < 0 ? at + size : at;
  if (place >= 0 && (place < size || (end_allowed && place == size))) return static_cast<size_t>(place);
  throw Error(Code::invalid, "position " + std::to_string(at) + " is outside a sequence of " + std::to_string(size));
}

Value constructed(Call& c) {
  Values all;
  for (size_t i = 0; i < c.inputs(); ++i) {
    c.tensor(i);  // throws for a sequence
    all.push_back(c.value(i));
  }
  return Value(std::move(all));
}

Value element_at(Call& c) {
  const Values& all = c.sequence(0);
  return all[sequence_place(c.integer(1), all.size(), false)];
}

Value inserted(Call& c) {
  Values all = c.sequence(0);
  c.tensor(1);  // throws for a sequence
  const size_t place = c.has(2) ? sequence_place(c.integer(2), all.size(), true) : all.size();
  all.insert(all.begin() + static_cast<int64_t>(place), c.value(1));
  return Value(std::move(all));
}

Value erased(Call& c) {
  Values all = c.sequence(0);
  const size_t place = sequence_place(c.has(1) ? c.integer(1) : -1, all.size(), false);
  all.erase(all.begin() + static_cast<int64_t>(place));
  return Value(std::move(all));
}

Value joined_sequence(Call& c) {
  const Values& all = c.sequence(0);
  if (all.empty()) throw Error(Code::invalid, "an empty sequence cannot be joined");
  std::vector<Tensor> tensors;
  for (const Value& each : all) {
    if (!each.tensor.defined()) throw Error(Code::invalid, "an element is not a tensor");
    tensors.push_back(each.tensor);
  }
  const int rank = tensors[0].rank();
  if (c.integer("new_axis", 0)) return c.as(stack(tensors, Call::axis(c.integer("axis", 0), rank + 1)), all[0].type);
  return c.as(cat(tensors, Call::axis(c.integer("axis", 0), rank)), all[0].type);
}

Value split_sequence(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = Call::axis(c.integer("axis", 0), x.rank());
  const int64_t extent = x.size(axis);
  std::vector<int64_t> sizes(static_cast<size_t>(Call::countable(static_cast<double>(extent))), 1);
  if (c.has(1) && c.rank(1)) {
    sizes = c.integers(1);
  } else if (c.has(1)) {
    const int64_t part = c.integer(1);
    if (part < 1) throw Error(Code::invalid, "a part has the extent " + std::to_string(part));
    sizes.clear();
    for (int64_t begin = 0; begin < extent; begin += part) sizes.push_back(std::min(part, extent - begin));
  }
  const bool squeezes = !c.has(1) && !c.integer("keepdims", 1);
  Values all;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    all.push_back(c.like(squeezes ? select(x, axis, begin) : slice(x, axis, begin, begin + size)));
    begin += size;
  }
  return Value(std::move(all));
}

Values mapped_sequence(Call& c) {
  const Graph& body = c.graph("body");
  std::vector<Values> results(body.outputs.size());
  for (size_t k = 0; k < c.sequence(0).size(); ++k) {
    for (size_t i = 0; i < c.inputs() && i < body.inputs.size(); ++i) {
      const Value value = c.value(i).sequence ? c.sequence(i).at(k) : c.value(i);
      c.run().set(body.inputs[i], raised(value, Level::shapes));
    }
    const Values outputs = c.run().run(body);
    for (size_t i = 0; i < outputs.size(); ++i) results[i].push_back(outputs[i]);
  }
  Values all;
  for (Values& each : results) all.push_back(Value(std::move(each)));
  return all;
}

Value number_of_elements(Call& c) {
  return Tensor::from<int64_t>({static_cast<int64_t>(c.sequence(0).size())}, {}, c.device());
}

Value has_element(Call& c) { return full({}, c.has(0), DType::boolean, c.device()); }

constexpr auto kWhole = Operator::Kind::whole;
constexpr Operator kSequences[] = {
    {"SequenceConstruct", constructed, kWhole},
    {"SequenceEmpty", [](Call&) { return Value(Values()); }, kWhole},
    {"SequenceLength", number_of_elements, Operator::Kind::shape},
    {"SequenceAt", element_at, kWhole},
    {"SequenceInsert", inserted, kWhole},
    {"SequenceErase", erased, kWhole},
    {"ConcatFromSequence", joined_sequence},
    {"SplitToSequence", split_sequence, kWhole},
    {"SequenceMap", mapped_sequence, Operator::Kind::flow},
    {"Optional", [](Call& c) { return c.has(0) ? c.value(0) : Value(); }, kWhole},
    {"OptionalHasElement", has_element, Operator::Kind::shape},
    {"OptionalGetElement", [](Call& c) { return c.value(0); }, kWhole},
};
}  // namespace

std::span<const Operator> sequence_operators() { return kSequences; }

}  // namespace plugrad::io::onnx
