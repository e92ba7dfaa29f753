// ONNX files for tests, written field by field: onnx.proto3.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace plugrad::test {

inline std::string onnx_varint(uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
inline std::string onnx_number(int field, int64_t value) {
  return onnx_varint(static_cast<uint64_t>(field) << 3) + onnx_varint(static_cast<uint64_t>(value));
}
inline std::string onnx_field(int field, const std::string& bytes) {
  return onnx_varint(static_cast<uint64_t>(field) << 3 | 2) + onnx_varint(bytes.size()) + bytes;
}
inline std::string onnx_fields(int field, const std::vector<std::string>& all) {
  std::string bytes;
  for (const std::string& each : all) bytes += onnx_field(field, each);
  return bytes;
}

// Element types, as ONNX numbers them.
inline constexpr int kOnnxF32 = 1, kOnnxU8 = 2, kOnnxI8 = 3, kOnnxU16 = 4, kOnnxI32 = 6, kOnnxI64 = 7, kOnnxBool = 9,
                     kOnnxU64 = 13;
template <class T> constexpr int onnx_type_of() {
  if (std::is_same_v<T, float>) return kOnnxF32;
  if (std::is_same_v<T, int64_t>) return kOnnxI64;
  if (std::is_same_v<T, int32_t>) return kOnnxI32;
  if (std::is_same_v<T, uint64_t>) return kOnnxU64;
  if (std::is_same_v<T, uint16_t>) return kOnnxU16;
  return std::is_same_v<T, int8_t> ? kOnnxI8 : kOnnxU8;
}

inline std::string onnx_dims(const std::vector<int64_t>& dims) {
  std::string bytes;
  for (const int64_t each : dims) bytes += onnx_number(1, each);
  return bytes;
}
template <class T>
std::string onnx_tensor(const std::string& name, const std::vector<int64_t>& dims, const std::vector<T>& elements) {
  std::string raw(elements.size() * sizeof(T), '\0');
  if (!raw.empty()) std::memcpy(raw.data(), elements.data(), raw.size());
  return onnx_dims(dims) + onnx_number(2, onnx_type_of<T>()) + onnx_field(8, name) + onnx_field(9, raw);
}
// A tensor whose elements are in another file.
inline std::string onnx_external(const std::string& name, const std::vector<int64_t>& dims, const std::string& location,
                                 const std::string& offset = "0", const std::string& length = "") {
  const auto entry = [](const std::string& key, const std::string& value) {
    return onnx_field(13, onnx_field(1, key) + onnx_field(2, value));
  };
  return onnx_dims(dims) + onnx_number(2, kOnnxF32) + onnx_field(8, name) + entry("location", location) +
         entry("offset", offset) + (length.empty() ? "" : entry("length", length)) + onnx_number(14, 1);
}

// A declared input or output. An extent is a number, or a symbol.
inline std::string onnx_value(const std::string& name, int type, const std::vector<std::string>& extents) {
  std::string shape;
  for (const std::string& each : extents) {
    const bool number = !each.empty() && each.find_first_not_of("0123456789") == each.npos;
    shape += onnx_field(1, number ? onnx_number(1, std::stoll(each)) : onnx_field(2, each));
  }
  return onnx_field(1, name) + onnx_field(2, onnx_field(1, onnx_number(1, type) + onnx_field(2, shape)));
}

inline std::string onnx_int(const std::string& name, int64_t value) {
  return onnx_field(1, name) + onnx_number(3, value) + onnx_number(20, 2);
}
inline std::string onnx_ints(const std::string& name, const std::vector<int64_t>& values) {
  std::string bytes = onnx_field(1, name) + onnx_number(20, 7);
  for (const int64_t each : values) bytes += onnx_number(8, each);
  return bytes;
}
inline std::string onnx_text(const std::string& name, const std::string& value) {
  return onnx_field(1, name) + onnx_field(4, value) + onnx_number(20, 3);
}
inline std::string onnx_graph_attribute(const std::string& name, const std::string& graph) {
  return onnx_field(1, name) + onnx_field(6, graph) + onnx_number(20, 5);
}
// An attribute of a function's node that is an attribute of the function.
inline std::string onnx_reference(const std::string& name, const std::string& of_function) {
  return onnx_field(1, name) + onnx_field(21, of_function) + onnx_number(20, 2);
}

inline std::string onnx_node(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {},
                             const std::string& domain = "") {
  return onnx_fields(1, inputs) + onnx_fields(2, outputs) + onnx_field(3, op + " node") + onnx_field(4, op) +
         onnx_fields(5, attributes) + (domain.empty() ? "" : onnx_field(7, domain));
}

struct OnnxGraphText {
  std::vector<std::string> nodes, inputs, outputs, initializers = {};
};
inline std::string onnx_graph(const OnnxGraphText& g) {
  return onnx_fields(1, g.nodes) + onnx_field(2, "graph") + onnx_fields(5, g.initializers) + onnx_fields(11, g.inputs) +
         onnx_fields(12, g.outputs);
}
inline std::string onnx_opset(const std::string& domain, int64_t version) {
  return onnx_field(1, domain) + onnx_number(2, version);
}
inline std::string onnx_model(const std::string& graph, const std::vector<std::string>& functions = {}, int64_t opset = 18) {
  return onnx_number(1, 9) + onnx_field(7, graph) + onnx_field(8, onnx_opset("", opset)) +
         onnx_field(8, onnx_opset("own", 1)) + onnx_field(8, onnx_opset("com.microsoft", 1)) + onnx_fields(25, functions);
}
inline std::string onnx_model(const OnnxGraphText& graph, int64_t opset = 18) {
  return onnx_model(onnx_graph(graph), {}, opset);
}

// A function of the domain "own".
inline std::string onnx_function(const std::string& name, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs, const std::vector<std::string>& nodes,
                                 const std::vector<std::string>& attributes = {}) {
  return onnx_field(1, name) + onnx_fields(4, inputs) + onnx_fields(5, outputs) + onnx_fields(6, attributes) +
         onnx_fields(7, nodes) + onnx_field(9, onnx_opset("", 18)) + onnx_field(9, onnx_opset("own", 1)) +
         onnx_field(10, "own");
}

}  // namespace plugrad::test
