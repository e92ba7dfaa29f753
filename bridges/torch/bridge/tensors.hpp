// Tensors of PyTorch as tensors of plugrad over the same memory, and back.
#pragma once
#include <ATen/core/Tensor.h>
#include <bridge/memory.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace plugrad_torch {

using plugrad::DType;
using plugrad::Number;
using plugrad::Shape;
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using T = at::Tensor;       // of PyTorch
using P = plugrad::Tensor;  // of plugrad
using OptT = std::optional<at::Tensor>;

// Thrown where plugrad lacks an argument's kind: a dtype, a rank, an option. The op then runs on the CPU; see kernel.hpp.
struct Unsupported {
  const char* what;
};

bool is_ours(const T& x);
// Whether x is a number: a tensor of rank 0 on the CPU, as PyTorch wraps Python's numbers.
bool is_number(const T& x);

std::optional<DType> dtype_if_any(ScalarType type);
DType dtype_of(ScalarType type);  // throws Unsupported
ScalarType scalar_type_of(DType dtype);
Shape shape_of(IntArrayRef sizes);      // throws Unsupported beyond rank 8
IntArrayRef sizes_of(const P& x);       // valid as long as x
Number number_of(const Scalar& value);  // throws Unsupported for complex numbers

// The memory of x and the bytes from its beginning to x's first element; allocates unused memory.
std::pair<plugrad::Memory, uint64_t> memory_of(const T& x);
// x over its own memory. Throws Unsupported, and c10::Error for a tensor of another device.
P over(const T& x);
P over(const T& x, ScalarType dtype);  // converted
P over(const OptT& x);                 // undefined for no tensor
P floating_over(const T& x);           // throws Unsupported for whole numbers and bools
// A tensor over x's bytes, with elements of an integer dtype of the same size: for copies of dtypes that plugrad lacks.
// Throws Unsupported for elements of more than 8 bytes.
P bytes_over(const T& x);

// A tensor with unused memory. strides are in elements.
T unused(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, c10::DeviceIndex index);
T unused(IntArrayRef sizes, ScalarType dtype, c10::DeviceIndex index);
std::vector<int64_t> dense_strides(IntArrayRef sizes);

// A tensor of PyTorch over y's memory, which may be shared.
T alias(const P& y);
// As alias, over memory of its own: a result of PyTorch's functional ops never shares memory with an operand.
T result(const P& y);
// Writes y to `to`, which gets y's shape. y's memory becomes the memory of `to` if that is unused.
T& write(T& to, const P& y);
// Gives x these sizes, dense; its storage grows if it is too small, without its contents.
void set_sizes(const T& x, IntArrayRef sizes);
// The storage holds at least `bytes` afterwards, and keeps its contents.
void grow(c10::StorageImpl& storage, uint64_t bytes, c10::DeviceIndex index);

}  // namespace plugrad_torch
