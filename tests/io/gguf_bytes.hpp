// Builds GGUF files, valid and damaged, for tests.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace plugrad::test {

template <class T> std::string little(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
inline std::string gguf_text(const std::string& text) { return little(uint64_t{text.size()}) + text; }

// An entry of the metadata: a key, the id of its type, and the value's bytes.
inline std::string gguf_entry(const std::string& key, uint32_t type, const std::string& value) {
  return gguf_text(key) + little(type) + value;
}
inline std::string gguf_array(uint32_t type, uint64_t count, const std::string& values) {
  return little(type) + little(count) + values;
}
inline std::string gguf_texts(const std::vector<std::string>& texts) {
  std::string values;
  for (const std::string& text : texts) values += gguf_text(text);
  return gguf_array(8, texts.size(), values);
}
// `extents` in ggml's order: the innermost axis first.
inline std::string gguf_tensor(const std::string& name, const std::vector<uint64_t>& extents, uint32_t type,
                               uint64_t offset) {
  std::string bytes = gguf_text(name) + little(static_cast<uint32_t>(extents.size()));
  for (const uint64_t extent : extents) bytes += little(extent);
  return bytes + little(type) + little(offset);
}
inline std::string gguf_file(const std::vector<std::string>& entries, const std::vector<std::string>& tensors,
                             const std::string& data, size_t alignment = 32, uint32_t version = 3) {
  std::string bytes = "GGUF" + little(version) + little(uint64_t{tensors.size()}) + little(uint64_t{entries.size()});
  for (const std::string& entry : entries) bytes += entry;
  for (const std::string& tensor : tensors) bytes += tensor;
  if (!tensors.empty()) bytes.append((alignment - bytes.size() % alignment) % alignment, '\0');
  return bytes + data;
}

}  // namespace plugrad::test
