// The names of dtypes in NumPy, PyTorch and Python: one row for each dtype of dtypes.def.
#pragma once
#include <plugrad/tensor/dtype.hpp>

#include <iterator>
#include <string_view>

namespace plugrad {

struct DTypeNames {
  DType dtype;
  const char* numpy;    // also the name in PyTorch and in the array API standard
  const char* array;    // NumPy's kind and bytes, as in .npy files; null if NumPy has no such dtype
  const char* format;   // of Python's struct module; null if it has none
  const char* method;   // PyTorch's method of tensors
  bool is_alias;        // whether `method` is also PyTorch's second name of the dtype
  const char* storage;  // PyTorch's class of storages
};
inline constexpr DTypeNames kDTypeNames[] = {
    {DType::f32, "float32", "f4", "f", "float", true, "FloatStorage"},
    {DType::f64, "float64", "f8", "d", "double", true, "DoubleStorage"},
    {DType::f16, "float16", "f2", "e", "half", true, "HalfStorage"},
    {DType::bf16, "bfloat16", nullptr, nullptr, "bfloat16", true, "BFloat16Storage"},
    {DType::i32, "int32", "i4", "i", "int", false, "IntStorage"},  // in plugrad, int is Python's: 64 bits
    {DType::i64, "int64", "i8", "q", "long", true, "LongStorage"},
    {DType::u8, "uint8", "u1", "B", "byte", false, "ByteStorage"},
    {DType::i8, "int8", "i1", "b", "char", false, "CharStorage"},
    {DType::i16, "int16", "i2", "h", "short", true, "ShortStorage"},
    {DType::boolean, "bool", "b1", "?", "bool", false, "BoolStorage"},
    {DType::c64, "complex64", "c8", "Zf", "cfloat", true, "ComplexFloatStorage"},
    {DType::c128, "complex128", "c16", "Zd", "cdouble", true, "ComplexDoubleStorage"},
};
static_assert(std::size(kDTypeNames) == std::size(kEveryDType), "each dtype has a row");

// Returns the row of a dtype.
constexpr const DTypeNames& names_of(DType dtype) {
  for (const DTypeNames& each : kDTypeNames)
    if (each.dtype == dtype) return each;
  return kDTypeNames[0];
}

}  // namespace plugrad
