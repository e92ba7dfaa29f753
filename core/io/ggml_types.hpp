// The types of ggml's tensors, and the decoders of their blocks.
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
  std::optional<DType> dtype;                        // of a type with elements stored unchanged by plugrad
  void (*decode)(const uint8_t* block, float* out);  // writes the elements of a block; null if there is no decoder
  bool readable() const { return dtype || decode; }
};

// Returns the row of a type, or null for an id unused by ggml.
const GgmlType* ggml_type(uint32_t id);
// Returns the row of a type found before by its id.
const GgmlType& ggml_type(const std::string& name);
// Returns the names of the readable types: "F32, F16, ...".
std::string readable_ggml_types();

}  // namespace plugrad::io
