// The element types of ONNX, and the dtypes that carry them here.
#pragma once
#include <plugrad/tensor/dtype.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace plugrad::io::onnx {

// TensorProto.DataType.
enum class ElementType : int32_t {
  none = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};

// The name as ONNX writes it, in lower case: "float16", "uint4".
std::string element_name(ElementType type);
// The smallest dtype that holds all values; i64 for uint64, which keeps the bits. Nothing for types without such a dtype:
// strings, complex numbers, float8 and float4.
std::optional<DType> carrier(ElementType type);
// As above, and throws Error (unsupported).
DType carrier_of(ElementType type);
ElementType element_type_of(DType dtype);
bool is_floating(ElementType type);
// The bits of an element in a file.
int bits_of(ElementType type);
// The range of an integer type of up to 32 bits.
struct Range {
  int64_t low, high;
};
std::optional<Range> range_of(ElementType type);
// Brings integers of the carrier into the range of a type of unsigned or few bits, modulo its number of values.
Tensor wrapped(const Tensor& x, ElementType type);

}  // namespace plugrad::io::onnx
