// Writes protobuf's wire format: https://protobuf.dev/programming-guides/encoding.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::io::onnx {

inline std::string varint_bytes(uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
inline std::string integer_field(uint64_t field, int64_t value) {
  return varint_bytes(field << 3) + varint_bytes(static_cast<uint64_t>(value));
}
// The tag and the length of a field whose `bytes` bytes follow.
inline std::string header_field(uint64_t field, uint64_t bytes) {
  return varint_bytes(field << 3 | 2) + varint_bytes(bytes);
}
inline std::string text_field(uint64_t field, std::string_view text) {
  return header_field(field, text.size()) + std::string(text);
}
inline std::string real_field(uint64_t field, float value) {
  std::string bytes = varint_bytes(field << 3 | 5);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

// Attributes of a node, AttributeProto.
inline std::string attribute(std::string_view name, int64_t value) {
  return text_field(5, text_field(1, name) + integer_field(3, value) + integer_field(20, 2));
}
inline std::string attribute(std::string_view name, double value) {
  return text_field(5, text_field(1, name) + real_field(2, static_cast<float>(value)) + integer_field(20, 1));
}
inline std::string attribute(std::string_view name, std::string_view value) {
  return text_field(5, text_field(1, name) + text_field(4, value) + integer_field(20, 3));
}
inline std::string attribute(std::string_view name, const std::vector<int64_t>& values) {
  std::string bytes = text_field(1, name) + integer_field(20, 7);
  for (const int64_t each : values) bytes += integer_field(8, each);
  return text_field(5, bytes);
}

}  // namespace plugrad::io::onnx
