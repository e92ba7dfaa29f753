#pragma once
#include <core/io/onnx/operator.hpp>

namespace plugrad::io::onnx {

// Input i with negative numbers counted from the end of an axis of input 0 that has this extent.
Tensor places_of(const Call& c, size_t i, int64_t extent);

// Positions in the flattened first axes of `shape`: those of the batch, and one for each number of the last axis of `index`
// (i64, negative numbers count from the end). The result has the shape of `index` without its last axis.
Tensor flat_positions(const Call& c, const Shape& shape, const Tensor& index, int batch);

}  // namespace plugrad::io::onnx
