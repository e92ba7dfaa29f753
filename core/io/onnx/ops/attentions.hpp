#pragma once
#include <core/io/onnx/operator.hpp>

namespace plugrad::io::onnx {

// (batch, length, heads * size) -> (batch, heads, length, size), and back.
Tensor heads_first(const Tensor& x, int64_t heads);
Tensor heads_last(const Tensor& x);

// Rotates (batch, length, heads, size). cos and sin: (length of the cache, half) with positions (batch, length) or (length),
// or (batch, length, half) without.
Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions, bool interleaved);

// A mask (.., queries, keys) of booleans: a query at place i + offset may attend keys of at most `before` places before it
// and `after` places after it. A negative number is not a limit. offset: i64 of any shape that broadcasts to
// (batch, heads, 1, 1).
Tensor causal_mask(const Call& c, int64_t queries, int64_t keys, const Tensor& offset, int64_t before, int64_t after);

}  // namespace plugrad::io::onnx
