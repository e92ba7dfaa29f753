// Matrix products of the CUDA backend with a cuBLAS replacement that checks every argument: each layout gives the correct
// values by the intended call.
#include <plugrad/backends/cuda.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/layers.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <simt/control.hpp>
#include <tests/cublas/checking_cublas.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

namespace plugrad::test {
namespace {

using cuda::checking::Calls;

Calls& calls() {
  void* library = dlopen(PLUGRAD_CHECKING_CUBLAS, RTLD_NOW | RTLD_LOCAL);
  const auto function = reinterpret_cast<cuda::checking::CallsFunction>(dlsym(library, "plugrad_checking_cublas_calls"));
  return *function();
}

Device device() {
  static const PluginRecord record = add_backend(plugrad_cuda_backend(host()));
  return Device("cuda-emu");
}

// Small integers, so that every sum is exact.
Tensor counted(const Shape& shape, DType dtype = DType::f32) {
  std::vector<double> values(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>((i * 7 + 3) % 11) - 5;
  return cast(Tensor::from(values, shape, device()), dtype);
}

std::vector<double> numbers(const Tensor& x) { return cast(contiguous(x), DType::f64).to_vector<double>(); }

// The expected product of two operands of rank 4 with equal batches.
std::vector<double> product_of(const Tensor& a, const Tensor& b) {
  const int64_t batches = a.shape()[0] * a.shape()[1], m = a.shape()[2], k = a.shape()[3], n = b.shape()[3];
  const std::vector<double> left = numbers(a), right = numbers(b);
  std::vector<double> result(static_cast<size_t>(batches * m * n));
  for (int64_t i = 0; i < batches * m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l)
        result[static_cast<size_t>(i * n + j)] +=
            left[static_cast<size_t>(i * k + l)] * right[static_cast<size_t>((i / m * k + l) * n + j)];
  return result;
}

enum class By { single, strides, pointers, tiles };
struct Case {
  const char* name;
  Shape a, b;            // shapes in memory
  Shape a_axes, b_axes;  // the order of axes in the product
  By by;
};

const Case kCases[] = {
    {"one", {1, 1, 5, 7}, {1, 1, 7, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, By::single},
    {"left turned", {1, 1, 7, 5}, {1, 1, 7, 3}, {0, 1, 3, 2}, {0, 1, 2, 3}, By::single},
    {"right turned", {1, 1, 5, 7}, {1, 1, 3, 7}, {0, 1, 2, 3}, {0, 1, 3, 2}, By::single},
    {"both turned", {1, 1, 7, 5}, {1, 1, 3, 7}, {0, 1, 3, 2}, {0, 1, 3, 2}, By::single},
    {"a row", {1, 1, 1, 7}, {1, 1, 7, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, By::single},
    {"a column", {1, 1, 5, 7}, {1, 1, 7, 1}, {0, 1, 2, 3}, {0, 1, 2, 3}, By::single},
    {"a batch", {2, 3, 5, 7}, {2, 3, 7, 4}, {0, 1, 2, 3}, {0, 1, 2, 3}, By::strides},
    {"heads inside", {2, 5, 3, 7}, {2, 7, 3, 4}, {0, 2, 1, 3}, {0, 2, 1, 3}, By::strides},
    {"many outer batches", {70, 5, 2, 7}, {70, 7, 2, 4}, {0, 2, 1, 3}, {0, 2, 1, 3}, By::pointers},
    {"more than one call takes", {600, 2, 2, 3}, {600, 3, 2, 4}, {0, 2, 1, 3}, {0, 2, 1, 3}, By::pointers},
    {"no contiguous axis", {1, 5, 7, 2}, {1, 7, 4, 2}, {0, 3, 1, 2}, {0, 3, 1, 2}, By::tiles},
};

class Matmul : public testing::TestWithParam<Case> {};

TEST_P(Matmul, HasTheRightValuesByTheRightCall) {
  const Case& c = GetParam();
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const Tensor a = permute(counted(c.a, dtype), c.a_axes), b = permute(counted(c.b, dtype), c.b_axes);
    const int single = calls().single, strided = calls().strided, by_pointers = calls().by_pointers;
    const Tensor got = matmul(a, b);
    EXPECT_EQ(numbers(got), product_of(a, b));
    EXPECT_EQ(calls().single - single > 0, c.by == By::single);
    EXPECT_EQ(calls().strided - strided > 0, c.by == By::strides);
    EXPECT_EQ(calls().by_pointers - by_pointers > 0, c.by == By::pointers);
  }
  EXPECT_EQ(simt::last_fault(), "");
}
INSTANTIATE_TEST_SUITE_P(Layouts, Matmul, testing::ValuesIn(kCases), [](const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
});

TEST(MatmulOfBatches, MatricesOfABatchAreSkippedAndRepeated) {
  const Tensor a = slice(counted({1, 40, 5, 7}), 1, 0, 40, 2), b = expand(counted({1, 1, 7, 4}), {1, 20, 7, 4});
  const int strided = calls().strided;
  EXPECT_EQ(numbers(matmul(a, b)), product_of(a, b));
  EXPECT_EQ(calls().strided - strided, 1);
}

TEST(MatmulOfBatches, ALackOfMemoryForTheWorkspaceLeavesNoHandleBehind) {
  device();
  std::string why;
  const auto blas = cuda::Blas::open(why);
  ASSERT_NE(blas, nullptr) << why;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const int before = calls().handles;
  simt::inject(simt::Injection::malloc_fails, 1);
  EXPECT_EQ(blas->handle(stream), nullptr);
  EXPECT_EQ(calls().handles, before);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_NE(blas->handle(stream), nullptr);
  EXPECT_EQ(calls().handles, before + 1);
  cudaStreamDestroy(stream);
}

// A linear layer: x (.., k), weight (n, k), bias (n).
struct LinearCase {
  const char* name;
  Tensor (*x)(DType dtype);
  Tensor (*weight)(DType dtype);
  Tensor (*bias)(DType dtype);
  bool by_lt;
};
const LinearCase kLinearCases[] = {
    {"matrix", [](DType t) { return counted({5, 7}, t); }, [](DType t) { return counted({3, 7}, t); },
     [](DType t) { return counted({3}, t); }, true},
    {"batches", [](DType t) { return counted({2, 5, 7}, t); }, [](DType t) { return counted({3, 7}, t); },
     [](DType t) { return counted({3}, t); }, true},
    {"parts of rows at odd places", [](DType t) { return slice(counted({5, 9}, t), 1, 1, 8); },
     [](DType t) { return slice(counted({4, 9}, t), 1, 2, 9); }, [](DType t) { return slice(counted({5}, t), 0, 1, 5); },
     true},
    {"a weight by columns", [](DType t) { return counted({5, 7}, t); },
     [](DType t) { return transpose(counted({7, 3}, t)); }, [](DType t) { return counted({3}, t); }, true},
    {"a bias with steps", [](DType t) { return counted({5, 7}, t); }, [](DType t) { return counted({3, 7}, t); },
     [](DType t) { return slice(counted({6}, t), 0, 0, 6, 2); }, false},
    {"a single column", [](DType t) { return counted({5, 7}, t); }, [](DType t) { return counted({1, 7}, t); },
     [](DType t) { return counted({1}, t); }, true},
    {"a single row", [](DType t) { return counted({1, 7}, t); }, [](DType t) { return counted({3, 7}, t); },
     [](DType t) { return counted({3}, t); }, true},
};

TEST(MatmulWithBias, IsOneCallWhereTheRowIsDense) {
  for (const LinearCase& each : kLinearCases)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
      const Tensor x = each.x(dtype), weight = each.weight(dtype), bias = each.bias(dtype);
      const int before = calls().with_bias;
      for (int call = 0; call < 2; ++call) {  // the second finds the first one's algorithm
        const Tensor got = linear(x, weight, bias);
        const Tensor rows = reshape(contiguous(x), {1, 1, x.count() / x.size(-1), x.size(-1)});
        std::vector<double> expected =
            product_of(rows, reshape(contiguous(transpose(weight)), {1, 1, weight.size(1), weight.size(0)}));
        const std::vector<double> added = numbers(bias);
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += added[i % added.size()];
        EXPECT_EQ(numbers(got), expected) << each.name << " in " << dtype_name(dtype);
      }
      EXPECT_EQ(calls().with_bias - before, each.by_lt && dtype != DType::f64 ? 2 : 0) << each.name;
    }
  EXPECT_EQ(simt::last_fault(), "");
}

// The old way serves where cublasLt has no algorithm, or does not take the product.
TEST(MatmulWithBias, IsDoneWithoutCublasLtWhereItRefuses) {
  const Tensor bias = counted({3});
  for (const auto& [refusal, k] : {std::pair(Calls::no_algorithm, 21), std::pair(Calls::no_product, 22)}) {
    const Tensor x = counted({5, k}), weight = counted({3, k});
    const Tensor expected = add(matmul(x, transpose(weight)), bias);
    calls().refusal = refusal;
    const int before = calls().with_bias;
    const Tensor got = linear(x, weight, bias);
    EXPECT_EQ(numbers(got), numbers(expected));
    calls().refusal = Calls::none;
    EXPECT_EQ(numbers(linear(x, weight, bias)), numbers(expected)) << "it is not asked again";
    EXPECT_EQ(calls().with_bias, before);
  }
}

// Equal shapes at other addresses: another bias, and operands with a smaller alignment.
TEST(MatmulWithBias, ItsAlgorithmIsForTheAlignment) {
  const Tensor all = counted({5, 80}), weight = counted({3, 64}), biases = counted({80});
  for (const int64_t first : {0, 1, 2, 4, 8, 16}) {
    const Tensor x = slice(all, 1, first, first + 64);
    const Tensor bias = slice(biases, 0, first, first + 3);
    const Tensor got = linear(x, weight, bias), copied = linear(contiguous(x), weight, add(bias, 0));
    EXPECT_EQ(numbers(got), numbers(copied)) << first;
  }
  EXPECT_EQ(simt::last_fault(), "");
}

// The driver counts the workspace; the core does not.
TEST(MatmulOfBatches, WorkspaceOfCublasIsInThePhysicalMemory) {
  const Device d = device();
  const Tensor x = counted({3, 3});
  d.sync();
  (void)matmul(x, x);
  const auto [free_bytes, total] = d.physical_memory();
  EXPECT_GE(total - free_bytes - d.memory().reserved, uint64_t{32} << 20);
}

}  // namespace
}  // namespace plugrad::test
