// The types of ggml's tensors, and what their blocks mean.
#pragma once
#include <plugrad/tensor/dtype.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace plugrad::io {

struct GgmlType {
  uint32_t id;
  const char* name;
  int64_t block, block_bytes;                        // elements and bytes of a block
  std::optional<DType> dtype;                        // of a type whose elements plugrad stores as they are
  void (*decode)(const uint8_t* block, float* out);  // writes the elements of one block; null without
  bool readable() const { return dtype || decode; }
};

// Returns the row of a type, or null for an id that ggml does not use.
const GgmlType* ggml_type(uint32_t id);
// Returns the row of a type that ggml_type found before.
const GgmlType& ggml_type(const std::string& name);
// Returns the names of the types that can be read: "F32, F16, ...".
std::string readable_ggml_types();

}  // namespace plugrad::io
