#include <backends/cuda/blas.hpp>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>

namespace plugrad::cuda {
namespace {

// plugrad's declarations use integers for enumerations and void* for handles. Both are passed in the same way if size and
// kind are equal.
template <class Ours, class Theirs> constexpr bool is_passed_alike() {
  constexpr bool numbers =
      (std::is_integral_v<Ours> || std::is_enum_v<Ours>) && (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
  return sizeof(Ours) == sizeof(Theirs) && (numbers || (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>));
}
template <class Ours, class Theirs> struct Agree;
template <class R, class... A, class S, class... B> struct Agree<R (*)(A...), S (*)(B...)> {
  template <class... T> struct List {};
  template <class... T, class... U> static constexpr bool all(List<T...>, List<U...>) {
    return (is_passed_alike<T, U>() && ...);
  }
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) != sizeof...(B)) return false;
    else return is_passed_alike<R, S>() && all(List<A...>(), List<B...>());
  }();
};

using cublasGemmExType = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                            const void*, cudaDataType, int, const void*, cudaDataType, int, const void*,
                                            void*, cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
using cublasGemmStridedBatchedExType = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                                          int, const void*, const void*, cudaDataType, int, long long,
                                                          const void*, cudaDataType, int, long long, const void*, void*,
                                                          cudaDataType, int, long long, int, cublasComputeType_t,
                                                          cublasGemmAlgo_t);

using cublasGemmBatchedExType = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                                   const void*, const void* const[], cudaDataType, int, const void* const[],
                                                   cudaDataType, int, const void*, void* const[], cudaDataType, int, int,
                                                   cublasComputeType_t, cublasGemmAlgo_t);

// The header overloads these functions; the casts select the functions of the C interface.
static_assert(std::is_same_v<decltype(static_cast<cublasGemmExType>(&cublasGemmEx)), cublasGemmExType>);
static_assert(std::is_same_v<decltype(static_cast<cublasGemmStridedBatchedExType>(&cublasGemmStridedBatchedEx)),
                             cublasGemmStridedBatchedExType>);
static_assert(std::is_same_v<decltype(static_cast<cublasGemmBatchedExType>(&cublasGemmBatchedEx)), cublasGemmBatchedExType>);
static_assert(Agree<cublas::Create, decltype(&cublasCreate_v2)>::value);
static_assert(Agree<cublas::Destroy, decltype(&cublasDestroy_v2)>::value);
static_assert(Agree<cublas::SetMathMode, decltype(&cublasSetMathMode)>::value);
static_assert(Agree<cublas::SetStream, decltype(&cublasSetStream_v2)>::value);
static_assert(Agree<cublas::SetWorkspace, decltype(&cublasSetWorkspace_v2)>::value);
static_assert(Agree<cublas::Gemm, cublasGemmExType>::value);
static_assert(Agree<cublas::GemmStridedBatched, cublasGemmStridedBatchedExType>::value);
static_assert(Agree<cublas::GemmBatched, cublasGemmBatchedExType>::value);
static_assert(!Agree<cublas::Gemm, cublasGemmStridedBatchedExType>::value &&
              !Agree<cublas::Create, decltype(&cublasSetStream_v2)>::value);

static_assert(Agree<cublas_lt::CreateProduct, decltype(&cublasLtMatmulDescCreate)>::value);
static_assert(Agree<cublas_lt::CreateMatrix, decltype(&cublasLtMatrixLayoutCreate)>::value);
static_assert(Agree<cublas_lt::CreatePreference, decltype(&cublasLtMatmulPreferenceCreate)>::value);
static_assert(Agree<cublas_lt::Destroy, decltype(&cublasLtMatmulDescDestroy)>::value);
static_assert(Agree<cublas_lt::SetAttribute, decltype(&cublasLtMatmulDescSetAttribute)>::value);
static_assert(Agree<cublas_lt::SetAttribute, decltype(&cublasLtMatmulPreferenceSetAttribute)>::value);
static_assert(Agree<cublas_lt::FindAlgorithm, decltype(&cublasLtMatmulAlgoGetHeuristic)>::value);
static_assert(Agree<cublas_lt::Multiply, decltype(&cublasLtMatmul)>::value);
static_assert(sizeof(cublas_lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(cublas_lt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cublas_lt::Heuristic, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(cublas_lt::Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(cublas_lt::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA &&
              cublas_lt::kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB &&
              cublas_lt::kEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE &&
              cublas_lt::kBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER &&
              cublas_lt::kAddsBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(cublas_lt::kMostWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              cublas_lt::kReductions == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
              cublas_lt::kReduceWide == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE &&
              cublas_lt::kAlignmentOfA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              cublas_lt::kAlignmentOfA + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(cublas::kSuccess == static_cast<int>(CUBLAS_STATUS_SUCCESS));
static_assert(cublas::kNoTranspose == static_cast<int>(CUBLAS_OP_N) && cublas::kTranspose == static_cast<int>(CUBLAS_OP_T));
static_assert(cublas::kFloat32 == static_cast<int>(CUDA_R_32F) && cublas::kFloat64 == static_cast<int>(CUDA_R_64F) &&
              cublas::kFloat16 == static_cast<int>(CUDA_R_16F) && cublas::kBFloat16 == static_cast<int>(CUDA_R_16BF));
static_assert(cublas::kCompute32 == static_cast<int>(CUBLAS_COMPUTE_32F) &&
              cublas::kCompute32Tf32 == static_cast<int>(CUBLAS_COMPUTE_32F_FAST_TF32));
static_assert(cublas::kRoundOnce == static_cast<int>(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
static_assert(cublas::kCompute64 == static_cast<int>(CUBLAS_COMPUTE_64F) &&
              cublas::kDefaultAlgorithm == static_cast<int>(CUBLAS_GEMM_DEFAULT));

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Cublas, IsOpenedWithAllItsFunctionsWhereItIs) {
  std::string why;
  const auto blas = Blas::open(why);
  if (!blas) GTEST_SKIP() << why;
  EXPECT_TRUE(blas->create && blas->destroy && blas->set_math_mode && blas->set_stream && blas->set_workspace &&
              blas->gemm && blas->gemm_strided_batched && blas->gemm_batched);
  EXPECT_NE(blas->lt, nullptr);
}

TEST(Cublas, IsNotOpenedFromAnyOtherFileThanTheOneNamed) {
  for (const char* name : {"/nowhere/libcublas.so", "relative/libcublas.so", "/proc/self/exe", "libm.so.6"}) {
    const Environment named("PLUGRAD_CUBLAS", name);
    std::string why;
    EXPECT_EQ(Blas::open(why), nullptr) << name;
    EXPECT_NE(why.find(name), std::string::npos) << why;
    EXPECT_NE(why.find("our own kernel"), std::string::npos) << why;
    EXPECT_NE(why.find("pip install nvidia-cublas"), std::string::npos) << why;
  }
}

// cuBLAS from NVIDIA's wheels in the activated Python environment; the newer version comes first.
TEST(Cublas, IsLookedForInThePackagesOfPython) {
  namespace fs = std::filesystem;
  const fs::path prefix = fs::path(testing::TempDir()) / ("plugrad-cublas-" + std::to_string(getpid()));
  const fs::path packages = prefix / "lib/python3.11/site-packages";
  for (const char* file : {"nvidia/cu13/lib/libcublas.so.13", "nvidia/cublas/lib/libcublas.so.12"}) {
    fs::create_directories((packages / file).parent_path());
    std::ofstream(packages / file) << "no library";
  }
  const auto found = [&](const char* file) { return std::ranges::count(cublas_candidates(), (packages / file).string()); };
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const Environment named(variable, prefix.c_str());
    EXPECT_EQ(found("nvidia/cu13/lib/libcublas.so.13"), 1) << variable;
    EXPECT_EQ(found("nvidia/cublas/lib/libcublas.so.12"), 1) << variable;
    const Environment relative(variable, "lib");
    EXPECT_EQ(found("nvidia/cu13/lib/libcublas.so.13"), 0) << "a relative prefix";
  }
  EXPECT_EQ(found("nvidia/cu13/lib/libcublas.so.13"), 0);
  fs::remove_all(prefix);
}

}  // namespace
}  // namespace plugrad::cuda
