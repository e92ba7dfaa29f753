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
