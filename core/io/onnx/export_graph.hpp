// A saved model on its way to an ONNX graph: memories become values, and views of memories become Reshape, Transpose,
// Expand, Slice or Gather.
#pragma once
#include <core/io/model_format.hpp>
#include <core/io/onnx/element_types.hpp>
#include <core/io/onnx/proto_writer.hpp>

#include <map>
#include <string>
#include <vector>

namespace plugrad::io::onnx {

inline constexpr int64_t kExportOpset = 20;

// A tensor of the file: the fields of a TensorProto but its elements, and where the elements come from.
struct ExportedTensor {
  std::string fields;
  std::string bytes;  // or:
  Tensor tensor;
  uint64_t raw_bytes() const {
    return tensor.defined() ? static_cast<uint64_t>(tensor.count() * item_size(tensor.dtype())) : bytes.size();
  }
};

class ExportGraph {
 public:
  // weights: by memory; undefined for memories without one.
  ExportGraph(const ModelContents& model, const std::vector<Tensor>& weights);

  // Adds a node, and returns the names of its results.
  std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes = "");
  std::vector<std::string> nodes(const std::string& op, const std::vector<std::string>& inputs, size_t outputs,
                                 const std::string& attributes = "");
  std::string integers(const std::vector<int64_t>& numbers);  // a constant of one axis
  std::string number(Number number, DType dtype);             // a constant of rank 0
  std::string constant(const std::vector<double>& numbers, const Shape& shape, DType dtype);

  // Reads a view, in the view's shape, and writes one.
  std::string read(const ModelView& view);
  void write(const ModelView& view, const std::string& value);
  std::string reshaped(const std::string& value, const Shape& shape);
  std::string sliced(const std::string& value, int axis, int64_t begin, int64_t end);

  const ModelContents& model() const { return model_; }
  DType dtype(const ModelView& view) const { return model_.memories[view.memory].dtype; }
  const Tensor& weight(const ModelView& view) const { return weights_[view.memory]; }

  void add_outputs();
  // The file: ModelProto in parts.
  std::vector<ExportedTensor> take_tensors() { return std::move(tensors_); }
  std::string inputs_and_outputs() const;
  const std::string& node_fields() const { return nodes_; }

 private:
  struct Memory {
    std::string value;  // empty before it is written
    Shape shape;
  };
  std::string fresh() { return "v" + std::to_string(names_++); }
  std::string kept(const Shape& shape, DType dtype, std::string bytes);
  std::string flat(uint32_t memory);
  std::string read_permuted(const ModelView& view, bool& found);
  std::string places(const ModelView& view);
  std::string value_info(uint64_t field, const std::string& name, const ModelView& view) const;

  const ModelContents& model_;
  const std::vector<Tensor>& weights_;
  std::vector<Memory> memories_;
  std::string nodes_;
  std::vector<ExportedTensor> tensors_;
  std::map<std::string, std::string> constants_;  // by dtype, shape and bytes
  size_t names_ = 0;
};

// Adds the nodes of an op. Throws Error (unsupported) for an op without a counterpart.
void export_op(ExportGraph& graph, const ModelOp& op);

}  // namespace plugrad::io::onnx
