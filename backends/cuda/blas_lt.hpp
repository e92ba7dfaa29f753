// cublasLt, a part of cuBLAS: products that add a row to each row of the result before they store it, as linear layers do.
// Without cublasLt, the row is first copied to all rows of the result. A test compares the declarations with cublasLt.h
// where the header is installed.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>

namespace plugrad::cuda {

namespace cublas_lt {
using Status = int;         // 0: success
using Handle = void*;       // a handle of cuBLAS serves
using Description = void*;  // of a product, a matrix, or a preference
// Attributes of a product, and an epilogue.
inline constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
inline constexpr uint32_t kAddsBias = 4;
// Attributes of a preference; the alignments of b, c and d follow a's. kReduceWide: partial sums have the type of the
// computation.
inline constexpr int kMostWorkspace = 1, kReductions = 3, kAlignmentOfA = 5;
inline constexpr uint32_t kReduceWide = 2;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};
using CreateProduct = Status (*)(Description*, int compute, int scale_type);
using CreateMatrix = Status (*)(Description*, int type, uint64_t rows, uint64_t columns, int64_t leading);
using CreatePreference = Status (*)(Description*);
using Destroy = Status (*)(Description);
using SetAttribute = Status (*)(Description, int attribute, const void* value, size_t bytes);
using FindAlgorithm = Status (*)(Handle, Description product, Description a, Description b, Description c, Description d,
                                 Description preference, int wanted, Heuristic*, int* found);
using Multiply = Status (*)(Handle, Description product, const void* alpha, const void* a, Description of_a, const void* b,
                            Description of_b, const void* beta, const void* c, Description of_c, void* d, Description of_d,
                            const Algorithm*, void* workspace, size_t workspace_bytes, cudaStream_t);
}  // namespace cublas_lt

struct BlasLt {
  // Returns the functions, or null if the library lacks one. cublas: the opened cuBLAS, which depends on cublasLt.
  static std::unique_ptr<const BlasLt> find(void* cublas);

  cublas_lt::CreateProduct create_product = nullptr;
  cublas_lt::CreateMatrix create_matrix = nullptr;
  cublas_lt::CreatePreference create_preference = nullptr;
  cublas_lt::Destroy destroy_product = nullptr, destroy_matrix = nullptr, destroy_preference = nullptr;
  cublas_lt::SetAttribute set_of_product = nullptr, set_of_preference = nullptr;
  cublas_lt::FindAlgorithm find_algorithm = nullptr;
  cublas_lt::Multiply multiply = nullptr;
};

// Of column-major matrices: d (m, n) = op(a) op(b) + bias (m) to each column, in f32 or halves.
struct BiasProduct {
  int transpose_a, transpose_b, type, compute;
  int64_t m, n, k, lda, ldb, ldd;
  const void *a, *b, *bias;
  void* d;
};

struct BlasHandle;

// The algorithms for the products of one stream, chosen once for each shape and alignment by cublasLt's heuristics.
class BiasProducts {
 public:
  BiasProducts() = default;
  ~BiasProducts();
  BiasProducts(const BiasProducts&) = delete;
  BiasProducts& operator=(const BiasProducts&) = delete;

  // Submits a product. Returns false, with nothing submitted, if cublasLt does not take it; it is not asked again for this
  // shape and alignment. [stream-serial]
  bool run(const BlasLt& lt, const BlasHandle& handle, cudaStream_t stream, const BiasProduct& product);

 private:
  struct Plan {
    cublas_lt::Description product = nullptr, a = nullptr, b = nullptr, d = nullptr;
    cublas_lt::Algorithm algorithm{};
    bool serves = false;
  };
  using Key = std::array<int64_t, 14>;

  static constexpr size_t kMostPlans = 1024;
  static Key key_of(const BiasProduct& product);
  static bool describe(const BlasLt& lt, const BiasProduct& product, Plan& plan);
  static bool choose(const BlasLt& lt, const BlasHandle& handle, const BiasProduct& product, Plan& plan);
  void clear();

  const BlasLt* lt_ = nullptr;  // outlives the stream
  std::map<Key, Plan> plans_;
};

}  // namespace plugrad::cuda
