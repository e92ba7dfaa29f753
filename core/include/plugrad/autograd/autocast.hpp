// Mixed precision: products in bf16 or f16, sums and losses in f32, chosen op by op while parameters stay f32.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <memory>
#include <string>

namespace plugrad {

struct AutocastOptions {
  DType dtype = DType::bf16;  // of products: bf16 or f16; losses in f16 need a GradScaler
  bool enabled = true;        // false: ops run in the dtypes of their operands, as outside
  std::string device = "";    // "cpu", "cuda": ignores tensors on devices of other backends
  bool cache = true;          // converts a parameter once for all its uses
};

// For its lifetime, ops on this thread choose their dtype of computation by their kind:
// - matmul and the ops built on it (linear, bmm, einsum, addmm, ..), convolutions and scaled_dot_product_attention convert
//   floating operands to `dtype`, and so return it;
// - softmax, normalisations, sums, means, powers, exponentials, logarithms, distances and losses convert bf16 and f16 to
//   f32;
// - all other ops compute in the dtypes of their operands; operands of two dtypes are promoted, as always.
// Products with an f64 operand are left alone. Conversions are differentiable, so the gradient of an f32 parameter is f32.
// Call backward outside: it computes in the dtypes of the forward pass in any case.
//
// Regions nest. A converted parameter is kept until the outermost region ends or the parameter is written.
// Throws Error (invalid) unless the dtype is bf16 or f16.
class PLUGRAD_API Autocast {
 public:
  explicit Autocast(AutocastOptions options = {});
  explicit Autocast(DType dtype) : Autocast(AutocastOptions{.dtype = dtype}) {}
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  struct State;

 private:
  std::unique_ptr<State> state_;
  void* outer_;
  uint32_t before_;
};

PLUGRAD_API bool autocast_enabled();
// The dtype of products in this thread's innermost region; bf16 outside.
PLUGRAD_API DType autocast_dtype();

}  // namespace plugrad
