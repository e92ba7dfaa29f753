// A model as it runs: names are resolved to numbers, functions are inlined, and each node knows its operator and the values
// that nothing needs after it.
#pragma once
#include <core/io/onnx/messages.hpp>
#include <core/io/onnx/operator.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace plugrad::io::onnx {

using ValueId = int32_t;
inline constexpr ValueId kAbsent = -1;
inline constexpr const char* kOwnDomain = "plugrad";  // of nodes that only the passes below make

struct Graph;

struct Node {
  const Operator* op = nullptr;
  std::string op_name, name, domain;
  int64_t opset = 1;
  size_t number = 0;  // in the model, nodes of inner graphs included
  std::vector<ValueId> inputs, outputs, dead;
  std::vector<AttributeMessage> attributes;
  std::vector<std::pair<std::string, std::unique_ptr<Graph>>> graphs;  // by the attribute's name
};

struct Graph {
  std::vector<ValueId> inputs, outputs;
  std::vector<TypeMessage> output_types;
  std::vector<Node> nodes;
};

struct Model {
  Graph graph;
  size_t nodes = 0, values = 0;
  // Initializers by their value. The tensors stay in the file.
  std::unordered_map<ValueId, TensorMessage> initializers;
  std::unordered_map<ValueId, std::pair<size_t, size_t>> producers;  // the number of a node, and of its result
  std::vector<ValueMessage> inputs, outputs;                         // inputs: all but the initializers
};

// Resolves a model's names. Throws Error: invalid for names that nothing defines, and for functions that call themselves or
// grow beyond a million nodes; unsupported with a list of all operators that are not implemented and their nodes.
Model build_model(const OpenedFile& file, ModelMessage&& message);

// Replaces a batch normalization after a convolution by other weights of the convolution. All parameters must be constant.
void fold_batch_norms(Model& model);

// Replaces a quantisation and the dequantisation of its codes by one node of the same values, which makes no codes.
void fuse_quantization_pairs(Model& model);

// Fills `dead` of all nodes.
void find_last_uses(Graph& graph);
// Fills `producers`.
void find_producers(const Graph& graph, Model& model);

}  // namespace plugrad::io::onnx
