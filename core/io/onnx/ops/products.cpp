#include <core/io/onnx/ops/named_activations.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/contractions.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/layers.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/quantization.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>

namespace plugrad::io::onnx {
namespace {

Value product(Call& c) { return c.like(matmul(c.tensor(0), c.tensor(1))); }

Value general_product(Call& c) {
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  const Tensor a = c.integer("transA", 0) ? transpose(c.tensor(0), 0, 1) : c.tensor(0);
  const bool transposed = c.integer("transB", 0), plain = alpha == 1 && beta == 1 && c.floating(0);
  if (plain && c.has(2) && c.rank(2) == 1 && c.tensor(2).count() == c.tensor(1).size(transposed ? 0 : 1))
    return c.like(linear(a, transposed ? c.tensor(1) : transpose(c.tensor(1), 0, 1), c.tensor(2)));
  Tensor result = matmul(a, transposed ? transpose(c.tensor(1), 0, 1) : c.tensor(1));
  if (alpha != 1) result = mul(result, alpha);
  if (c.has(2)) result = add(result, beta == 1 ? c.tensor(2) : mul(c.tensor(2), beta));
  return c.like(result);
}

Value activated_product(Call& c) {
  const Value product = general_product(c);
  return c.like(named_activation(c, product.tensor));
}

Value sum_of_products(Call& c) {
  std::vector<Tensor> operands;
  for (size_t i = 0; i < c.inputs(); ++i) operands.push_back(c.tensor(i));
  return c.like(einsum(c.text("equation", ""), operands));
}

// An operand whose first axis is its row axis, before the axes of the batch.
Tensor batch_first(const Tensor& x) { return x.rank() < 3 ? x : movedim(x, {0}, {-2}); }

Value determinant(Call& c) {
  const Tensor& x = c.tensor(0);
  return c.like(linalg::det(item_size(x.dtype()) < 4 ? cast(x, DType::f32) : x));
}

Value fused_product(Call& c) {
  const auto operand = [&](size_t i, const char* turns, const char* moves) {
    const Tensor x = c.integer(moves, 0) ? batch_first(c.tensor(i)) : c.tensor(i);
    return c.integer(turns, 0) ? transpose(x) : x;
  };
  const Tensor a = operand(0, "transA", "transBatchA"), b = operand(1, "transB", "transBatchB");
  const double alpha = c.real("alpha", 1);
  const Tensor result = matmul(a, b);
  return c.like(alpha == 1 ? result : mul(result, alpha));
}

// The zeros of a weight whose elements are scale * (code - zero), by row and block: codes of the same bits, floats, or
// 2^(bits - 1).
std::vector<double> block_zeros(const Call& c, int64_t rows, int64_t groups, int64_t bits) {
  std::vector<double> zeros(static_cast<size_t>(rows * groups), static_cast<double>(int64_t{1} << (bits - 1)));
  if (!c.has(3)) return zeros;
  if (c.type(3) != ElementType::u8) return c.reals(3);
  const std::vector<int64_t> bytes = c.integers(3);
  const int64_t row_bytes = (groups * bits + 7) / 8;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t byte = bytes.at(static_cast<size_t>(row * row_bytes + g * bits / 8));
      zeros[static_cast<size_t>(row * groups + g)] = static_cast<double>(byte >> (g * bits % 8) & ((1 << bits) - 1));
    }
  return zeros;
}

// Columns k .. end of the last block are codes of elements that do not exist.
Value product_of_few_bits(Call& c) {
  const int64_t k = c.integer("K", 0), n = c.integer("N", 0), bits = c.integer("bits", 4),
                block = c.integer("block_size", 0);
  if (c.has(4) && c.tensor(4).count()) throw Error(Code::unsupported, "g_idx, an order of columns, is not supported");
  if (bits != 2 && bits != 4 && bits != 8) throw Error(Code::unsupported, std::to_string(bits) + " bits are not 2, 4 or 8");
  if (block < 16 || k < 1 || n < 1) throw Error(Code::invalid, "K, N or block_size is not a size");
  Call::positive(k, "K");
  Call::positive(n, "N");
  Call::positive(block, "block_size");
  const int64_t groups = (k + block - 1) / block, width = groups * block;
  const int64_t codes_count = c.tensor(1).count(), scales_count = c.tensor(2).count();
  if (scales_count != n * groups || codes_count != n * groups * (block * bits / 8))
    throw Error(Code::invalid, "N, K and block_size do not fit the codes or the scales");
  const Tensor scales = c.prepared({2, 3}, [&] {
    const std::vector<double> scale = c.reals(2), zeros = block_zeros(c, n, groups, bits);
    std::vector<float> all;
    for (size_t i = 0; i < static_cast<size_t>(n * groups); ++i) {
      all.push_back(static_cast<float>(scale.at(i)));
      all.push_back(static_cast<float>(-scale[i] * zeros.at(i)));
    }
    return Tensor::from<float>(all, {n, groups, 2}, c.device());
  });
  const Tensor codes = c.prepared({1}, [&] { return reshape(c.tensor(1), {n, width * bits / 8}); });
  Tensor x = c.tensor(0);
  if (width != k) {
    Shape more = x.shape();
    more[static_cast<size_t>(x.rank() - 1)] = width - k;
    x = cat({x, zeros(more, x.dtype(), c.device())}, x.rank() - 1);
  }
  Tensor result = quantized_matmul(x, codes, scales);
  return c.like(c.has(5) ? add(result, c.tensor(5)) : result);
}

constexpr Operator kProducts[] = {
    {"MatMul", product},
    {"Gemm", general_product},
    {"Einsum", sum_of_products},
    {"Det", determinant},
    {"com.microsoft.FusedGemm", activated_product},
    {"com.microsoft.FusedMatMul", fused_product},
    {"com.microsoft.MatMulNBits", product_of_few_bits},
};
}  // namespace

std::span<const Operator> product_operators() { return kProducts; }

}  // namespace plugrad::io::onnx
