#include <backends/cuda/blas_lt.hpp>

#include <backends/cuda/blas.hpp>
#include <backends/cuda/library.hpp>

#include <bit>
#include <utility>

namespace plugrad::cuda {
namespace {

constexpr float kOne = 1, kZero = 0;

// The largest power of two that divides the address, up to the 256 bytes that cuBLAS may assume.
uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | 256;
  return uint32_t{1} << std::countr_zero(bits);
}

}  // namespace

std::unique_ptr<const BlasLt> BlasLt::find(void* cublas) {
  auto lt = std::make_unique<BlasLt>();
  const auto find = [cublas](const char* name, auto& into) { return find_function(cublas, name, into); };
  const bool is_complete =
      find("cublasLtMatmulDescCreate", lt->create_product) && find("cublasLtMatrixLayoutCreate", lt->create_matrix) &&
      find("cublasLtMatmulPreferenceCreate", lt->create_preference) &&
      find("cublasLtMatmulDescDestroy", lt->destroy_product) && find("cublasLtMatrixLayoutDestroy", lt->destroy_matrix) &&
      find("cublasLtMatmulPreferenceDestroy", lt->destroy_preference) &&
      find("cublasLtMatmulDescSetAttribute", lt->set_of_product) &&
      find("cublasLtMatmulPreferenceSetAttribute", lt->set_of_preference) &&
      find("cublasLtMatmulAlgoGetHeuristic", lt->find_algorithm) && find("cublasLtMatmul", lt->multiply);
  if (!is_complete) return nullptr;
  return lt;
}

BiasProducts::~BiasProducts() { clear(); }

void BiasProducts::clear() {
  for (auto& [key, plan] : plans_) {
    if (plan.product) lt_->destroy_product(plan.product);
    for (const cublas_lt::Description matrix : {plan.a, plan.b, plan.d})
      if (matrix) lt_->destroy_matrix(matrix);
  }
  plans_.clear();
}

BiasProducts::Key BiasProducts::key_of(const BiasProduct& p) {
  return {p.transpose_a,
          p.transpose_b,
          p.type,
          p.compute,
          p.m,
          p.n,
          p.k,
          p.lda,
          p.ldb,
          p.ldd,
          alignment_of(p.a),
          alignment_of(p.b),
          alignment_of(p.bias),
          alignment_of(p.d)};
}

bool BiasProducts::describe(const BlasLt& lt, const BiasProduct& p, Plan& plan) {
  const auto set = [&](int attribute, const auto& value) {
    return lt.set_of_product(plan.product, attribute, &value, sizeof value) == cublas::kSuccess;
  };
  const auto matrix = [&](cublas_lt::Description& made, bool is_transposed, int64_t rows, int64_t columns, int64_t leading) {
    if (is_transposed) std::swap(rows, columns);
    return lt.create_matrix(&made, p.type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading) ==
           cublas::kSuccess;
  };
  return lt.create_product(&plan.product, p.compute, cublas::kFloat32) == cublas::kSuccess &&
         set(cublas_lt::kTransposeA, p.transpose_a) && set(cublas_lt::kTransposeB, p.transpose_b) &&
         set(cublas_lt::kEpilogue, cublas_lt::kAddsBias) && set(cublas_lt::kBiasPointer, p.bias) &&
         matrix(plan.a, p.transpose_a, p.m, p.k, p.lda) && matrix(plan.b, p.transpose_b, p.k, p.n, p.ldb) &&
         matrix(plan.d, false, p.m, p.n, p.ldd);
}

bool BiasProducts::choose(const BlasLt& lt, const BlasHandle& handle, const BiasProduct& p, Plan& plan) {
  cublas_lt::Description preference = nullptr;
  if (lt.create_preference(&preference) != cublas::kSuccess) return false;
  const auto set = [&](int attribute, const auto& value) {
    return lt.set_of_preference(preference, attribute, &value, sizeof value) == cublas::kSuccess;
  };
  cublas_lt::Heuristic found{};
  int count = 0;
  const bool is_set =
      set(cublas_lt::kMostWorkspace, handle.workspace_bytes) && set(cublas_lt::kReductions, cublas_lt::kReduceWide) &&
      set(cublas_lt::kAlignmentOfA, alignment_of(p.a)) && set(cublas_lt::kAlignmentOfA + 1, alignment_of(p.b)) &&
      set(cublas_lt::kAlignmentOfA + 2, alignment_of(p.d)) && set(cublas_lt::kAlignmentOfA + 3, alignment_of(p.d));
  const bool is_found = is_set && lt.find_algorithm(handle.handle, plan.product, plan.a, plan.b, plan.d, plan.d, preference,
                                                    1, &found, &count) == cublas::kSuccess;
  lt.destroy_preference(preference);
  plan.algorithm = found.algorithm;
  return is_found && count == 1 && found.state == cublas::kSuccess;
}

bool BiasProducts::run(const BlasLt& lt, const BlasHandle& handle, cudaStream_t stream, const BiasProduct& p) {
  lt_ = &lt;
  const Key key = key_of(p);
  auto known = plans_.find(key);
  if (known == plans_.end()) {
    if (plans_.size() == kMostPlans) clear();
    known = plans_.emplace(key, Plan()).first;
    Plan& made = known->second;
    made.serves = describe(lt, p, made) && choose(lt, handle, p, made);
  }
  Plan& plan = known->second;
  plan.serves = plan.serves &&
                lt.set_of_product(plan.product, cublas_lt::kBiasPointer, &p.bias, sizeof p.bias) == cublas::kSuccess &&
                lt.multiply(handle.handle, plan.product, &kOne, p.a, plan.a, p.b, plan.b, &kZero, p.d, plan.d, p.d, plan.d,
                            &plan.algorithm, handle.workspace, handle.workspace_bytes, stream) == cublas::kSuccess;
  return plan.serves;
}

}  // namespace plugrad::cuda
