// ONNX's messages, as far as the importer needs them: onnx.proto3 of ONNX 1.23, IR version 14.
#pragma once
#include <core/io/onnx/wire.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::io::onnx {

struct TensorMessage {
  std::string name;
  std::vector<int64_t> dims;
  int64_t type = 0;  // an ElementType
  std::optional<Place> raw;
  std::vector<int64_t> integers;  // of int32_data, int64_data and uint64_data
  std::vector<float> floats;
  std::vector<double> doubles;
  size_t strings = 0;
  bool external = false;
  std::vector<std::pair<std::string, std::string>> external_data;
};

struct TypeMessage {
  enum class Kind { none, tensor, sequence, optional, other };
  struct Extent {
    std::optional<int64_t> value;
    std::string symbol;
  };
  Kind kind = Kind::none;
  int64_t element = 0;
  bool has_shape = false;
  std::vector<Extent> shape;
  std::vector<TypeMessage> inner;  // one, for sequences and optionals
};

struct ValueMessage {
  std::string name;
  TypeMessage type;
};

struct GraphMessage;
struct AttributeMessage {
  std::string name, text, reference;  // reference: to an attribute of the function
  int64_t integer = 0;
  float real = 0;
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::vector<TensorMessage> tensors;
  std::vector<GraphMessage> graphs;
  bool sparse = false;
};

struct NodeMessage {
  std::vector<std::string> inputs, outputs;
  std::string name, op, domain, overload;
  std::vector<AttributeMessage> attributes;
};

struct GraphMessage {
  std::string name;
  std::vector<NodeMessage> nodes;
  std::vector<TensorMessage> initializers;
  std::vector<ValueMessage> inputs, outputs;
  bool sparse = false;
};

struct OpsetMessage {
  std::string domain;
  int64_t version = 0;
};

struct FunctionMessage {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<AttributeMessage> defaults;
  std::vector<NodeMessage> nodes;
  std::vector<OpsetMessage> opsets;
};

struct ModelMessage {
  GraphMessage graph;
  std::vector<OpsetMessage> opsets;
  std::vector<FunctionMessage> functions;
};

// All throw Error (io_error) with the path and the position.
ModelMessage read_model_message(const OpenedFile& file);
// A file that is one TensorProto.
TensorMessage read_tensor_message(const OpenedFile& file);
// A file that is one SequenceProto or OptionalProto: its tensors, and whether there is a value.
struct ListMessage {
  std::vector<TensorMessage> tensors;
  bool is_sequence = false;
};
ListMessage read_list_message(const OpenedFile& file, bool optional);

}  // namespace plugrad::io::onnx
