// The types of ggml's tensors, and the readers of their blocks.
#pragma once
#include <plugrad/tensor/dtype.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace plugrad::io {

// How a block's elements become codes and scales, as plugrad/ops/quantization.hpp has them.
struct GgmlCodes {
  int bits = 0;       // of a code in plugrad; 0: plugrad has no such codes
  int64_t group = 0;  // elements
  bool has_minima = false;
  DType scales = DType::f32;  // holds the scales and minima exactly
  // Writes a block's codes, one in each byte, and the scale and the minimum of each group; minima is unused without minima.
  void (*read)(const uint8_t* block, uint8_t* codes, float* scales, float* minima) = nullptr;
};

struct GgmlType {
  uint32_t id;
  const char* name;
  int64_t block, block_bytes;  // elements and bytes of a block
  std::optional<DType> dtype;  // of a type with elements stored unchanged by plugrad
  GgmlCodes codes;
  bool readable() const { return dtype || codes.bits; }
};

// Writes the elements of a block of codes.
void decode(const GgmlType& type, const uint8_t* block, float* out);
// Writes a block's codes, packed in the type's bits, and its scales: pairs with minima, or scales alone.
void split(const GgmlType& type, const uint8_t* block, uint8_t* codes, float* scales);

// Returns the row of a type, or null for an id unused by ggml.
const GgmlType* ggml_type(uint32_t id);
// Returns the row of a type found before by its id.
const GgmlType& ggml_type(const std::string& name);
// Returns the names of the readable types: "F32, F16, ...", or of those with codes alone.
std::string readable_ggml_types();
std::string quantized_ggml_types();

}  // namespace plugrad::io
