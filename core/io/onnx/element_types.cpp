#include <core/io/onnx/element_types.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad::io::onnx {
namespace {

struct ElementInfo {
  ElementType type;
  const char* name;
  std::optional<DType> carrier;
  int bits;
  bool is_unsigned;
};
constexpr ElementInfo kElements[] = {
    {ElementType::f32, "float32", DType::f32, 32, false},
    {ElementType::u8, "uint8", DType::u8, 8, true},
    {ElementType::i8, "int8", DType::i8, 8, false},
    {ElementType::u16, "uint16", DType::i32, 16, true},
    {ElementType::i16, "int16", DType::i16, 16, false},
    {ElementType::i32, "int32", DType::i32, 32, false},
    {ElementType::i64, "int64", DType::i64, 64, false},
    {ElementType::string, "string", std::nullopt, 0, false},
    {ElementType::boolean, "bool", DType::boolean, 8, true},
    {ElementType::f16, "float16", DType::f16, 16, false},
    {ElementType::f64, "float64", DType::f64, 64, false},
    {ElementType::u32, "uint32", DType::i64, 32, true},
    {ElementType::u64, "uint64", DType::i64, 64, true},
    {ElementType::bf16, "bfloat16", DType::bf16, 16, false},
    {ElementType::u4, "uint4", DType::u8, 4, true},
    {ElementType::i4, "int4", DType::i8, 4, false},
    {ElementType::c64, "complex64", std::nullopt, 64, false},
    {ElementType::c128, "complex128", std::nullopt, 128, false},
    {ElementType::f8e4m3fn, "float8e4m3fn", std::nullopt, 8, false},
    {ElementType::f8e4m3fnuz, "float8e4m3fnuz", std::nullopt, 8, false},
    {ElementType::f8e5m2, "float8e5m2", std::nullopt, 8, false},
    {ElementType::f8e5m2fnuz, "float8e5m2fnuz", std::nullopt, 8, false},
    {ElementType::f4e2m1, "float4e2m1", std::nullopt, 4, false},
    {ElementType::f8e8m0, "float8e8m0", std::nullopt, 8, false},
    {ElementType::u2, "uint2", DType::u8, 2, true},
    {ElementType::i2, "int2", DType::i8, 2, false},
};

const ElementInfo* element_info(ElementType type) {
  for (const ElementInfo& each : kElements)
    if (each.type == type) return &each;
  return nullptr;
}
}  // namespace

std::string element_name(ElementType type) {
  const ElementInfo* info = element_info(type);
  return info ? info->name : "type " + std::to_string(static_cast<int>(type));
}

std::optional<DType> carrier(ElementType type) {
  const ElementInfo* info = element_info(type);
  return info ? info->carrier : std::nullopt;
}

DType carrier_of(ElementType type) {
  if (const auto dtype = carrier(type)) return *dtype;
  throw Error(Code::unsupported, "tensors of " + element_name(type) + " are not supported");
}

ElementType element_type_of(DType dtype) {
  for (const ElementInfo& each : kElements)
    if (each.carrier == dtype && each.bits == 8 * item_size(dtype)) return each.type;
  return ElementType::none;
}

bool is_floating(ElementType type) {
  const auto dtype = carrier(type);
  return dtype && plugrad::is_floating(*dtype);
}

int bits_of(ElementType type) {
  const ElementInfo* info = element_info(type);
  return info ? info->bits : 0;
}

std::optional<Range> range_of(ElementType type) {
  const ElementInfo* info = element_info(type);
  if (!info || !info->carrier || info->bits > 32 || is_floating(type) || type == ElementType::boolean) return std::nullopt;
  const int64_t values = int64_t{1} << info->bits;
  if (info->is_unsigned) return Range{0, values - 1};
  return Range{-values / 2, values / 2 - 1};
}

Tensor wrapped(const Tensor& x, ElementType type) {
  const auto range = range_of(type);
  if (!range || bits_of(type) == 8 * item_size(*carrier(type))) return x;
  const Number mask = range->high - range->low;
  if (!range->low) return bitwise_and(x, mask);
  return sub(bitwise_and(sub(x, range->low), mask), -range->low);
}

}  // namespace plugrad::io::onnx
