// Replaces cublasLt on the emulator, in the same file as the replacement for cuBLAS.
#include <backends/cuda/blas_lt.hpp>
#include <tests/cublas/checked_gemm.hpp>
#include <tests/cublas/checking_cublas.hpp>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

namespace plugrad::cuda::checking {
namespace {

constexpr uint64_t kMagic = 0x706c75676c74, kWorkspace = 1024;
constexpr int kInvalid = 7, kNotSupported = 15;

struct Operation {
  int compute, scale_type, transposes[2] = {}, epilogue = 1;
  const void* bias = nullptr;
};
struct Matrix {
  int type;
  uint64_t rows, columns;
  int64_t leading;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = 7, alignments[4] = {256, 256, 256, 256};
};
// What an algorithm holds: a digest of the product, and the least alignments of a, b, c, d and the bias.
struct Chosen {
  uint64_t magic, product;
  uint32_t reductions, alignments[5];
};
static_assert(sizeof(Chosen) <= sizeof(cublas_lt::Algorithm));

uint32_t alignment_of(const void* address) {
  return uint32_t{1} << std::countr_zero(reinterpret_cast<uintptr_t>(address) | 256);
}

uint64_t digest_of(const Operation& o, const Matrix& a, const Matrix& b, const Matrix& d) {
  uint64_t digest = static_cast<uint64_t>(o.compute * 4 + o.transposes[0] * 2 + o.transposes[1]);
  for (const Matrix& x : {a, b, d})
    for (const uint64_t each : {x.rows, x.columns, static_cast<uint64_t>(x.leading), static_cast<uint64_t>(x.type)})
      digest = digest * 0x100000001b3 + each;
  return digest;
}

template <class T> T& as(cublas_lt::Description description) { return *static_cast<T*>(description); }
template <class T> int set(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof to) return kInvalid;
  std::memcpy(&to, value, bytes);
  return cublas::kSuccess;
}
template <class T> int destroy(cublas_lt::Description description) {
  delete static_cast<T*>(description);
  return cublas::kSuccess;
}

// The first wrong argument of a product, or "".
std::string flaw(const Operation& o, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d) {
  const auto rows = [](const Matrix& x, bool is_transposed) { return is_transposed ? x.columns : x.rows; };
  const auto columns = [](const Matrix& x, bool is_transposed) { return is_transposed ? x.rows : x.columns; };
  if (rows(a, o.transposes[0]) != d.rows || columns(b, o.transposes[1]) != d.columns ||
      columns(a, o.transposes[0]) != rows(b, o.transposes[1]))
    return "the matrices do not fit each other";
  if (c.rows != d.rows || c.columns != d.columns || c.leading != d.leading) return "c and d differ";
  if (o.scale_type != cublas::kFloat32) return "the scalars are not f32";
  if (o.epilogue != static_cast<int>(cublas_lt::kAddsBias) || !o.bias) return "the epilogue has no bias";
  return {};
}

std::string flaw(const Chosen& chosen, uint64_t product, std::array<const void*, 5> addresses, size_t element) {
  constexpr const char* kNames[] = {"a", "b", "c", "d", "the bias"};
  if (chosen.magic != kMagic) return "the algorithm is not from the heuristics";
  if (chosen.product != product) return "the algorithm was chosen for another product";
  if (element == 2 && chosen.reductions & ~cublas_lt::kReduceWide) return "the preference allows sums of halves";
  for (size_t i = 0; i < addresses.size(); ++i)
    if (alignment_of(addresses[i]) < chosen.alignments[i])
      return std::string(kNames[i]) + " has a smaller alignment than the algorithm was chosen for";
  return {};
}

}  // namespace
}  // namespace plugrad::cuda::checking

using namespace plugrad::cuda;
using namespace plugrad::cuda::checking;

extern "C" {

cublas::Status cublasLtMatmulDescCreate(cublas_lt::Description* made, int compute, int scale_type) {
  *made = new Operation{compute, scale_type};
  return cublas::kSuccess;
}
cublas::Status cublasLtMatrixLayoutCreate(cublas_lt::Description* made, int type, uint64_t rows, uint64_t columns,
                                          int64_t leading) {
  *made = new Matrix{type, rows, columns, leading};
  return cublas::kSuccess;
}
cublas::Status cublasLtMatmulPreferenceCreate(cublas_lt::Description* made) {
  *made = new Preference;
  return cublas::kSuccess;
}
cublas::Status cublasLtMatmulDescDestroy(cublas_lt::Description product) { return destroy<Operation>(product); }
cublas::Status cublasLtMatrixLayoutDestroy(cublas_lt::Description matrix) { return destroy<Matrix>(matrix); }
cublas::Status cublasLtMatmulPreferenceDestroy(cublas_lt::Description preference) { return destroy<Preference>(preference); }

cublas::Status cublasLtMatmulDescSetAttribute(cublas_lt::Description product, int attribute, const void* value,
                                              size_t bytes) {
  Operation& o = as<Operation>(product);
  switch (attribute) {
    case cublas_lt::kTransposeA: return set(o.transposes[0], value, bytes);
    case cublas_lt::kTransposeB: return set(o.transposes[1], value, bytes);
    case cublas_lt::kEpilogue: return set(o.epilogue, value, bytes);
    case cublas_lt::kBiasPointer: return set(o.bias, value, bytes);
    default: return kInvalid;
  }
}

cublas::Status cublasLtMatmulPreferenceSetAttribute(cublas_lt::Description preference, int attribute, const void* value,
                                                    size_t bytes) {
  Preference& p = as<Preference>(preference);
  if (attribute == cublas_lt::kMostWorkspace) return set(p.workspace, value, bytes);
  if (attribute == cublas_lt::kReductions) return set(p.reductions, value, bytes);
  const int operand = attribute - cublas_lt::kAlignmentOfA;
  return operand >= 0 && operand < 4 ? set(p.alignments[operand], value, bytes) : kInvalid;
}

cublas::Status cublasLtMatmulAlgoGetHeuristic(cublas_lt::Handle, cublas_lt::Description product, cublas_lt::Description a,
                                              cublas_lt::Description b, cublas_lt::Description c, cublas_lt::Description d,
                                              cublas_lt::Description preference, int wanted, cublas_lt::Heuristic* results,
                                              int* found) {
  const Operation& o = as<Operation>(product);
  const Preference& p = as<Preference>(preference);
  *found = 0;
  if (wanted < 1 || !flaw(o, as<Matrix>(a), as<Matrix>(b), as<Matrix>(c), as<Matrix>(d)).empty()) return kInvalid;
  if (p.workspace < kWorkspace || calls_so_far().refusal == Calls::no_algorithm) return kNotSupported;
  const Chosen chosen{kMagic,
                      digest_of(o, as<Matrix>(a), as<Matrix>(b), as<Matrix>(d)),
                      p.reductions,
                      {p.alignments[0], p.alignments[1], p.alignments[2], p.alignments[3], alignment_of(o.bias)}};
  results[0] = {};
  std::memcpy(&results[0].algorithm, &chosen, sizeof chosen);
  results[0].workspace_bytes = kWorkspace;
  *found = 1;
  return cublas::kSuccess;
}

cublas::Status cublasLtMatmul(cublas_lt::Handle, cublas_lt::Description product, const void* alpha, const void* a,
                              cublas_lt::Description of_a, const void* b, cublas_lt::Description of_b, const void* beta,
                              const void* c, cublas_lt::Description of_c, void* d, cublas_lt::Description of_d,
                              const cublas_lt::Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  if (calls_so_far().refusal == Calls::no_product) return kNotSupported;
  ++calls_so_far().with_bias;
  const Operation o = as<Operation>(product);
  const Matrix &left = as<Matrix>(of_a), &right = as<Matrix>(of_b), &out = as<Matrix>(of_d);
  Chosen chosen;
  std::memcpy(&chosen, algorithm, sizeof chosen);
  const simt::Library& library = simt::library_of(stream);
  Gemm g{"cublasLtMatmul",
         {stream, workspace_bytes >= kWorkspace && library.covers(stream, workspace, workspace_bytes), cublas::kRoundOnce},
         o.transposes[0],
         o.transposes[1],
         static_cast<int>(out.rows),
         static_cast<int>(out.columns),
         static_cast<int>(o.transposes[0] ? left.rows : left.columns),
         alpha,
         beta,
         left.type,
         static_cast<int>(left.leading),
         right.type,
         static_cast<int>(right.leading),
         out.type,
         static_cast<int>(out.leading),
         o.compute,
         cublas::kDefaultAlgorithm,
         1,
         o.bias};
  std::string wrong = flaw(o, left, right, as<Matrix>(of_c), out);
  if (wrong.empty()) wrong = flaw(chosen, digest_of(o, left, right, out), {a, b, c, d, o.bias}, size_of(out.type));
  if (wrong.empty() && c != d) wrong = "c is not d";
  if (!wrong.empty()) {
    library.submit(stream, [&library, message = text(g, wrong)] { library.fail(message); });
    return cublas::kSuccess;
  }
  return submit(g, [=](const Product& p) {
    multiply(p, static_cast<const char*>(a), static_cast<const char*>(b), static_cast<char*>(d));
  });
}

}  // extern "C"

static_assert(std::is_same_v<decltype(&cublasLtMatmulDescCreate), cublas_lt::CreateProduct>);
static_assert(std::is_same_v<decltype(&cublasLtMatrixLayoutCreate), cublas_lt::CreateMatrix>);
static_assert(std::is_same_v<decltype(&cublasLtMatmulPreferenceCreate), cublas_lt::CreatePreference>);
static_assert(std::is_same_v<decltype(&cublasLtMatmulDescSetAttribute), cublas_lt::SetAttribute>);
static_assert(std::is_same_v<decltype(&cublasLtMatmulAlgoGetHeuristic), cublas_lt::FindAlgorithm>);
static_assert(std::is_same_v<decltype(&cublasLtMatmul), cublas_lt::Multiply>);
