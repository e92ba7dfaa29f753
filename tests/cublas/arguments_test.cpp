// Planted bugs: the replacement for cuBLAS finds each bug, and its message names the wrong argument.
#include <cuda_runtime.h>
#include <simt/control.hpp>
#include <tests/cublas/checking_cublas.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace plugrad::cuda {
namespace {

template <class F> F function(const char* name) {
  static void* const library = dlopen(PLUGRAD_CHECKING_CUBLAS, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F>(dlsym(library, name));
}

// c (5 x 4) = a (5 x 7) b (7 x 4), column-major.
struct Arguments {
  int transpose_a = cublas::kNoTranspose, transpose_b = cublas::kNoTranspose, m = 5, n = 4, k = 7;
  int lda = 5, ldb = 7, ldc = 5, type = cublas::kFloat32, compute = cublas::kCompute32;
  ptrdiff_t shift_a = 0;  // bytes
};

class CublasArguments : public testing::Test {
 protected:
  void SetUp() override {
    simt::clear_fault();
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    for (char** operand : {&a_, &b_, &c_}) {
      ASSERT_EQ(cudaMalloc(operand, 35 * sizeof(float)), cudaSuccess);
      ASSERT_EQ(cudaMemset(*operand, 0, 35 * sizeof(float)), cudaSuccess);
    }
    ASSERT_EQ(cudaMalloc(&workspace_, kWorkspace), cudaSuccess);
    ASSERT_EQ(function<cublas::Create>("cublasCreate_v2")(&handle_), cublas::kSuccess);
    ASSERT_EQ(function<cublas::SetStream>("cublasSetStream_v2")(handle_, stream_), cublas::kSuccess);
    ASSERT_EQ(set_workspace(workspace_), cublas::kSuccess);
  }
  void TearDown() override {
    cudaDeviceReset();
    cudaStreamDestroy(stream_);
    destroy();
  }
  void destroy() { EXPECT_EQ(function<cublas::Status (*)(cublas::Handle)>("cublasDestroy_v2")(handle_), cublas::kSuccess); }
  int set_workspace(void* at) { return function<cublas::SetWorkspace>("cublasSetWorkspace_v2")(handle_, at, kWorkspace); }
  int multiply(const Arguments& g) {
    const float one = 1, zero = 0;
    return function<cublas::Gemm>("cublasGemmEx")(handle_, g.transpose_a, g.transpose_b, g.m, g.n, g.k, &one, a_ + g.shift_a,
                                                  g.type, g.lda, b_, g.type, g.ldb, &zero, c_, g.type, g.ldc, g.compute,
                                                  cublas::kDefaultAlgorithm);
  }
  void expect_fault(const std::string& part) {
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorLaunchFailure);
    EXPECT_NE(simt::last_fault().find(part), std::string::npos) << simt::last_fault();
  }

  static constexpr size_t kWorkspace = 4096;
  cudaStream_t stream_ = nullptr;
  cublas::Handle handle_ = nullptr;
  char *a_ = nullptr, *b_ = nullptr, *c_ = nullptr, *workspace_ = nullptr;
};
using ArgumentsOfCublas = CublasArguments;

TEST_F(ArgumentsOfCublas, AreRight) {
  EXPECT_EQ(multiply({}), cublas::kSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(simt::last_fault(), "");
}

struct Planted {
  const char* name;
  void (*plant)(Arguments&);
  const char* found;
};
class Bugs : public CublasArguments, public testing::WithParamInterface<Planted> {};

TEST_P(Bugs, IsFound) {
  Arguments arguments;
  GetParam().plant(arguments);
  multiply(arguments);
  expect_fault(GetParam().found);
}
INSTANTIATE_TEST_SUITE_P(
    Cublas, Bugs,
    testing::Values(
        Planted{"SwappedTranspose", [](Arguments& g) { g.transpose_a = cublas::kTranspose; },
                "lda is less than the rows of a"},
        Planted{"SwappedLeadingDimensions", [](Arguments& g) { std::swap(g.ldb, g.ldc); }, "ldb is less than the rows of b"},
        Planted{"SwappedSizes", [](Arguments& g) { std::swap(g.m, g.k); }, "lda is less than the rows of a"},
        Planted{"LeadingDimensionTooLarge", [](Arguments& g) { g.lda = 6; },
                "a touches 23 bytes past the end of an allocation"},
        Planted{"PlaceBeforeTheStart", [](Arguments& g) { g.shift_a = -4; },
                "a touches 4 bytes before an allocation of 140"},
        Planted{"MisalignedOperand", [](Arguments& g) { g.shift_a = 2; }, "a is not aligned for its type"},
        Planted{"TypesOfDoubles", [](Arguments& g) { g.type = cublas::kFloat64; }, "compute type 68 is not for data type 1"},
        Planted{"NoMatrix", [](Arguments& g) { g.n = 0; }, "a size is out of range"}),
    [](const testing::TestParamInfo<Planted>& info) { return std::string(info.param.name); });

TEST_F(ArgumentsOfCublas, HalvesAreRoundedOnce) {
  const Arguments halves{.type = cublas::kBFloat16};
  ASSERT_EQ(function<cublas::SetMathMode>("cublasSetMathMode")(handle_, cublas::kRoundOnce), cublas::kSuccess);
  multiply(halves);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  ASSERT_EQ(function<cublas::SetMathMode>("cublasSetMathMode")(handle_, 0), cublas::kSuccess);
  multiply(halves);
  expect_fault("the math mode allows sums of halves");
}

// The same product in f32 or bf16, with a bias, by cublasLt.
struct LtArguments {
  int type = cublas::kFloat32, columns_of_b = 4;
  uint32_t reductions = cublas_lt::kReduceWide, epilogue = cublas_lt::kAddsBias, alignment = 2;
  ptrdiff_t shift_a = 0, shift_bias = 0;  // bytes, after the algorithm was chosen
  bool spoils_algorithm = false, has_workspace = true;
};

class ArgumentsOfCublasLt : public CublasArguments {
 protected:
  void multiply_with_bias(const LtArguments& g) {
    static const auto lt = BlasLt::find(dlopen(PLUGRAD_CHECKING_CUBLAS, RTLD_NOW | RTLD_LOCAL));
    ASSERT_NE(lt, nullptr);
    cublas_lt::Description product, preference, a, b, d;
    const char* bias = b_ + 35 * sizeof(float) - 5 * (g.type == cublas::kFloat32 ? 4 : 2);  // the end of an allocation
    lt->create_product(&product, cublas::kCompute32, cublas::kFloat32);
    lt->set_of_product(product, cublas_lt::kEpilogue, &g.epilogue, sizeof g.epilogue);
    lt->set_of_product(product, cublas_lt::kBiasPointer, &bias, sizeof bias);
    lt->create_matrix(&a, g.type, 5, 7, 5);
    lt->create_matrix(&b, g.type, 7, static_cast<uint64_t>(g.columns_of_b), 7);
    lt->create_matrix(&d, g.type, 5, 4, 5);
    lt->create_preference(&preference);
    const uint64_t workspace = kWorkspace;
    lt->set_of_preference(preference, cublas_lt::kMostWorkspace, &workspace, sizeof workspace);
    lt->set_of_preference(preference, cublas_lt::kReductions, &g.reductions, sizeof g.reductions);
    for (int i = 0; i < 4; ++i)
      lt->set_of_preference(preference, cublas_lt::kAlignmentOfA + i, &g.alignment, sizeof g.alignment);
    cublas_lt::Heuristic found{};
    int count = 0;
    lt->find_algorithm(handle_, product, a, b, d, d, preference, 1, &found, &count);
    if (g.spoils_algorithm) found.algorithm = {};
    bias += g.shift_bias;
    lt->set_of_product(product, cublas_lt::kBiasPointer, &bias, sizeof bias);
    const float one = 1, zero = 0;
    lt->multiply(handle_, product, &one, a_ + g.shift_a, a, b_, b, &zero, c_, d, c_, d, &found.algorithm,
                 g.has_workspace ? workspace_ : nullptr, kWorkspace, stream_);
    for (const cublas_lt::Description matrix : {a, b, d}) lt->destroy_matrix(matrix);
    lt->destroy_product(product);
    lt->destroy_preference(preference);
  }
};

TEST_F(ArgumentsOfCublasLt, AreRight) {
  for (const int type : {cublas::kFloat32, cublas::kBFloat16}) multiply_with_bias({.type = type});
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(simt::last_fault(), "");
}

struct LtPlanted {
  const char* name;
  LtArguments arguments;
  const char* found;
};
class LtBugs : public ArgumentsOfCublasLt, public testing::WithParamInterface<LtPlanted> {};

TEST_P(LtBugs, IsFound) {
  multiply_with_bias(GetParam().arguments);
  expect_fault(GetParam().found);
}
INSTANTIATE_TEST_SUITE_P(
    Cublas, LtBugs,
    testing::Values(
        LtPlanted{"BiasTooShort", {.shift_bias = 8}, "the bias touches 7 bytes past the end of an allocation"},
        LtPlanted{"SumsOfHalves", {.type = cublas::kBFloat16, .reductions = 7}, "the preference allows sums of halves"},
        LtPlanted{"AlgorithmForAnotherAlignment",
                  {.alignment = 256, .shift_a = 4},
                  "a has a smaller alignment than the algorithm was chosen for"},
        LtPlanted{"AlgorithmFromNowhere", {.spoils_algorithm = true}, "the algorithm is not from the heuristics"},
        LtPlanted{"NoWorkspace", {.has_workspace = false}, "the handle has no workspace"},
        LtPlanted{"MatricesThatDoNotFit", {.columns_of_b = 3}, "the matrices do not fit each other"},
        LtPlanted{"NoEpilogue", {.epilogue = 1}, "the epilogue has no bias"}),
    [](const testing::TestParamInfo<LtPlanted>& info) { return std::string(info.param.name); });

// An algorithm serves one kind of product and one alignment: each of these products needs another.
TEST_F(ArgumentsOfCublas, LtAlgorithmsAreChosenForEachProduct) {
  const auto lt = BlasLt::find(dlopen(PLUGRAD_CHECKING_CUBLAS, RTLD_NOW | RTLD_LOCAL));
  ASSERT_NE(lt, nullptr);
  const BlasHandle handle{handle_, workspace_, kWorkspace};
  BiasProducts products;
  const BiasProduct first{0, 0, cublas::kFloat32, cublas::kCompute32, 2, 2, 3, 2, 3, 2, a_, b_, b_ + 64, c_};
  std::vector<BiasProduct> all(12, first);
  all[1].lda = 3;
  all[2].ldb = 4;
  all[3].ldd = 3;
  all[4].compute = cublas::kCompute32Tf32;
  all[5].a = a_ + 4;
  all[6].b = b_ + 4;
  all[7].bias = b_ + 68;
  all[8].d = c_ + 4;
  all[9].k = 2;
  all[10].transpose_a = all[10].transpose_b = cublas::kTranspose;
  all[10].lda = 3;
  all[11].type = cublas::kBFloat16;
  for (int round = 0; round < 2; ++round)
    for (const BiasProduct& each : all) EXPECT_TRUE(products.run(*lt, handle, stream_, each));
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(simt::last_fault(), "");
}

TEST_F(ArgumentsOfCublas, WorkspaceIsOfTheDevice) {
  std::vector<char> host(kWorkspace);
  EXPECT_NE(set_workspace(host.data()), cublas::kSuccess);
  EXPECT_NE(set_workspace(workspace_ + 8), cublas::kSuccess) << "it is not aligned";
  destroy();
  ASSERT_EQ(function<cublas::Create>("cublasCreate_v2")(&handle_), cublas::kSuccess);
  ASSERT_EQ(function<cublas::SetStream>("cublasSetStream_v2")(handle_, stream_), cublas::kSuccess);
  multiply({});
  expect_fault("the handle has no workspace");
}

TEST_F(ArgumentsOfCublas, ArraysOfPointersAreInDeviceMemory) {
  const float one = 1, zero = 0;
  const void* pointers[] = {a_, a_};
  const auto batched = function<cublas::GemmBatched>("cublasGemmBatchedEx");
  batched(handle_, 0, 0, 5, 4, 7, &one, pointers, 0, 5, pointers, 0, 7, &zero, reinterpret_cast<void* const*>(c_), 0, 5, 2,
          cublas::kCompute32, cublas::kDefaultAlgorithm);
  expect_fault("an array of pointers touches an address that is not the device's");
}

}  // namespace
}  // namespace plugrad::cuda
