// Lines, sums and buffers that are larger than drivers accept in one piece. Drivers may end long shaders without an error.
#include <plugrad/plugrad.hpp>

#include <gtest/gtest.h>

namespace plugrad::test {
namespace {

constexpr int64_t kMany = int64_t(1) << 24;

TEST(Large, SumsOfLongLines) {
  const Tensor x = ones({2, kMany});
  EXPECT_EQ(sum(x).item<float>(), 2.0f * kMany);
  EXPECT_EQ(sum(x, {1}).to_vector<float>(), std::vector<float>(2, static_cast<float>(kMany)));
  EXPECT_EQ(sum(ones({kMany}, DType::i64)).item<int64_t>(), kMany);
}

TEST(Large, ExtremesOfLongLines) {
  Tensor x = ones({kMany});
  slice(x, 0, kMany - 5, kMany - 4).copy_(full({1}, 3.0f));
  EXPECT_EQ(argmax(x).item<int64_t>(), kMany - 5);
  EXPECT_EQ(max(x).item<float>(), 3.0f);
  EXPECT_EQ(min(x).item<float>(), 1.0f);
  EXPECT_EQ(argmax(zeros({kMany})).item<int64_t>(), 0);  // the first of equal elements
}

TEST(Large, AddsByManyIndices) {
  const Tensor index = zeros({kMany}, DType::i64), source = ones({kMany});
  const Tensor x = scatter_add(zeros({3}), 0, index, source);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{static_cast<float>(kMany), 0, 0}));
  const Tensor counts = scatter_add(zeros({3}, DType::i64), 0, index, ones({kMany}, DType::i64));
  EXPECT_EQ(counts.to_vector<int64_t>(), (std::vector<int64_t>{kMany, 0, 0}));
}

TEST(Large, ProductsOfLongSums) {
  constexpr int64_t k = 1 << 20;
  EXPECT_EQ(matmul(ones({2, k}), ones({k, 3})).to_vector<float>(), std::vector<float>(6, static_cast<float>(k)));
}

// Every key has the same weight. The first number of keys fits into one dispatch; for the second, attention is composed.
TEST(Large, AttentionOverManyKeys) {
  for (const int64_t n : {int64_t(9600), int64_t(1) << 17}) {
    const Tensor query = zeros({1, 2, 64}), key = zeros({1, n, 64});
    Tensor value = zeros({1, n, 64});
    slice(value, 1, n / 2, n).copy_(full({1, 1, 1}, 2.0f));
    value.requires_grad_();
    const Tensor out = scaled_dot_product_attention(query, key, value);
    EXPECT_EQ(out.to_vector<float>(), std::vector<float>(128, 1.0f)) << n;
    sum(out).backward();
    for (const float each : value.grad().to_vector<float>()) ASSERT_FLOAT_EQ(each, 2.0f / static_cast<float>(n)) << n;
  }
}

// lavapipe binds at most 128 MiB of a buffer.
TEST(Large, BuffersBeyondTheLargestBinding) {
  constexpr int64_t n = 160 << 20;
  Tensor x = full({n}, 1.0f);
  x.mul_(2);
  slice(x, 0, n - 1, n).copy_(full({1}, 5.0f));
  EXPECT_EQ(sum(slice(x, 0, n - (int64_t(1) << 22), n)).item<float>(), 2.0f * ((1 << 22) - 1) + 5);
  EXPECT_EQ(x.to_vector<float>()[0], 2.0f);
}

}  // namespace
}  // namespace plugrad::test
