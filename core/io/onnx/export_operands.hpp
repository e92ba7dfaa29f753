#pragma once
#include <core/io/onnx/export_graph.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace plugrad::io::onnx {

using Names = std::vector<std::string>;

// An op with its operands as values of the graph.
struct Exported {
  ExportGraph& g;
  const ModelOp& op;

  const ModelView& out(size_t i = 0) const { return op.outputs[i]; }
  const Shape& shape() const { return out().shape; }
  DType dtype() const { return g.dtype(out()); }
  const ModelView& view(size_t i) const {
    if (op.inputs.at(i).view) return *op.inputs[i].view;
    throw Error(Code::unsupported, "a number in place of a tensor is not supported");
  }
  DType dtype_of(size_t i) const { return op.inputs[i].view ? g.dtype(*op.inputs[i].view) : number_dtype(); }
  // Numbers have the dtype of the tensors that are not bool, or the output's.
  DType number_dtype() const {
    DType type = dtype();
    for (const ModelInput& each : op.inputs)
      if (each.view && g.dtype(*each.view) != DType::boolean) type = g.dtype(*each.view);
    return type;
  }
  std::string in(size_t i) const {
    const ModelInput& input = op.inputs.at(i);
    return input.view ? g.read(*input.view) : g.number(input.number, number_dtype());
  }
  double number(const char* name) const { return op.attributes.numbers.at(name); }
  int64_t axis() const { return static_cast<int64_t>(number("axis")); }
  std::vector<int64_t> list(const char* name) const {
    const Shape& all = op.attributes.lists.at(name);
    std::vector<int64_t> some(all.begin(), all.end());
    some.resize(std::min<size_t>(some.size(), shape().size() - 2));
    return some;
  }
  std::string cast_to(const std::string& value, DType to) const {
    return g.node("Cast", {value}, attribute("to", static_cast<int64_t>(element_type_of(to))));
  }
  std::string in_as(size_t i, DType to) const { return dtype_of(i) == to ? in(i) : cast_to(in(i), to); }
};

// Operators of windows: convolutions with and without bias, the transposed convolution, and max pooling with positions.
Names convolved(const Exported& e);
Names convolved_back(const Exported& e);
Names max_pooled(const Exported& e);

}  // namespace plugrad::io::onnx
