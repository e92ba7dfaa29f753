// Plans a matrix product: chooses cuBLAS calls for it, or our own kernel.
#include <backends/cuda/matmul.hpp>

#include <backends/cuda/copies.hpp>
#include <backends/cuda/rows.hpp>

#include <array>
#include <optional>
#include <utility>

namespace plugrad::cuda {
namespace {

// The most cuBLAS calls for one op. For more, the matrices are passed as pointers, at the cost of a launch that writes their
// addresses.
constexpr int64_t kMostCalls = 8;

Matrix matrix_of(const plugrad_view& view) {
  return {data<char>(view), stride_of(view, view.rank - 2), stride_of(view, view.rank - 1)};
}

// A matrix in BLAS's form: its rows (or columns) are contiguous and do not overlap.
struct Plain {
  bool serves, is_transposed;
  int leading;
  int operation() const { return is_transposed ? cublas::kTranspose : cublas::kNoTranspose; }
};

bool is_plain(int64_t row, int64_t column, int64_t rows, int64_t columns) {
  return (columns == 1 || column == 1) && (rows == 1 || row >= columns) && std::max(row, columns) < INT32_MAX;
}

Plain plain(const Matrix& matrix, int64_t rows, int64_t columns) {
  if (is_plain(matrix.row, matrix.column, rows, columns))
    return {true, false, static_cast<int>(rows == 1 ? columns : matrix.row)};
  if (is_plain(matrix.column, matrix.row, columns, rows))
    return {true, true, static_cast<int>(columns == 1 ? rows : matrix.column)};
  return {false, false, 0};
}

struct PlainOperands {
  Plain a, b, c;
};
// Returns nothing if cuBLAS does not accept the operands.
std::optional<PlainOperands> plain_operands(const Product& p) {
  const Plain a = plain(p.a, p.m, p.k), b = plain(p.b, p.k, p.n), c = plain(p.c, p.m, p.n);
  const bool fits = std::max({p.m, p.n, p.k}) < INT32_MAX;
  if (!fits || !a.serves || !b.serves || !c.serves || c.is_transposed) return {};
  return PlainOperands{a, b, c};
}

// Writes the addresses of the matrices from number `first` on: all of b, then of a, then of c. An upload of the addresses
// could not be part of a graph: its source in the host's memory would have to live as long as the graph.
__global__ void __launch_bounds__(kBlock)
    pointers_kernel(const __grid_constant__ Product p, void** to, int64_t first, int batches, int64_t size) {
  const int i = static_cast<int>(blockIdx.x) * kBlock + static_cast<int>(threadIdx.x);
  if (i >= batches) return;
  const Reach<3> at = p.batch.reach(static_cast<uint64_t>(first + i));
  to[i] = p.b.base + at.at[2] * size;
  to[batches + i] = p.a.base + at.at[1] * size;
  to[2 * batches + i] = p.c.base + at.at[0] * size;
}

// 1 and 0, in cuBLAS's type of computation.
struct Factors {
  const void *one, *zero;
};
constexpr float kOne32 = 1, kZero32 = 0;
constexpr double kOne64 = 1, kZero64 = 0;

// The arguments common to all calls of a product. BLAS is column-major, so it sees transposed matrices, and computes (a b)^T
// = b^T a^T.
struct BlasCall {
  const Submission& submission;
  const BlasHandle& own;
  const Product& p;
  Plain a, b, c;
  int type, compute;
  int64_t size;  // of an element

  const Blas& blas() const { return *submission.backend().blas(); }
  int m() const { return static_cast<int>(p.m); }
  int n() const { return static_cast<int>(p.n); }
  int k() const { return static_cast<int>(p.k); }
  Factors factors() const { return type == cublas::kFloat64 ? Factors{&kOne64, &kZero64} : Factors{&kOne32, &kZero32}; }
  const void* alpha() const { return factors().one; }
  const void* beta() const { return p.adds ? factors().one : factors().zero; }
  char* c_at(const Reach<3>& at) const { return p.c.base + at.at[0] * size; }
  char* a_at(const Reach<3>& at) const { return p.a.base + at.at[1] * size; }
  char* b_at(const Reach<3>& at) const { return p.b.base + at.at[2] * size; }

  // Multiplies matrices from number `first` on, evenly spaced along the innermost axis of the batch.
  cublas::Status by_strides(int64_t first, int batches) const;
  // Multiplies matrices from number `first` on, at any addresses.
  cublas::Status by_pointers(int64_t first, int batches) const;
};

cublas::Status BlasCall::by_strides(int64_t first, int batches) const {
  const Reach<3> at = p.batch.reach(static_cast<uint64_t>(first));
  if (batches == 1)
    return blas().gemm(own.handle, b.operation(), a.operation(), n(), m(), k(), alpha(), b_at(at), type, b.leading, a_at(at),
                       type, a.leading, beta(), c_at(at), type, c.leading, compute, cublas::kDefaultAlgorithm);
  return blas().gemm_strided_batched(own.handle, b.operation(), a.operation(), n(), m(), k(), alpha(), b_at(at), type,
                                     b.leading, p.batch.stride[2][0], a_at(at), type, a.leading, p.batch.stride[1][0],
                                     beta(), c_at(at), type, c.leading, p.batch.stride[0][0], batches, compute,
                                     cublas::kDefaultAlgorithm);
}

cublas::Status BlasCall::by_pointers(int64_t first, int batches) const {
  void** const pointers = reinterpret_cast<void**>(own.pointers());
  const unsigned blocks = (static_cast<unsigned>(batches) + kBlock - 1) / kBlock;
  PLUGRAD_LAUNCH(pointers_kernel, blocks, kBlock, 0, submission.handle(), p, pointers, first, batches, size);
  submission.launched();
  const void* const* const inputs = pointers;
  return blas().gemm_batched(own.handle, b.operation(), a.operation(), n(), m(), k(), alpha(), inputs, type, b.leading,
                             inputs + batches, type, a.leading, beta(), pointers + 2 * batches, type, c.leading, batches,
                             compute, cublas::kDefaultAlgorithm);
}

// Returns whether the batch consists of few runs of evenly spaced matrices, one strided cuBLAS call each.
bool is_in_few_runs(const Walk<3>& batch, int64_t run) {
  if (!batch.rank) return true;
  const bool ascends = batch.stride[0][0] > 0 && batch.stride[1][0] >= 0 && batch.stride[2][0] >= 0;
  return ascends && run < INT32_MAX && static_cast<int64_t>(batch.count) / run <= kMostCalls;
}

struct CudaTypes {
  int data, compute;
};

// Halves accumulate in f32.
CudaTypes types_of(uint8_t dtype, bool tf32) {
  if (dtype == PLUGRAD_F64) return {cublas::kFloat64, cublas::kCompute64};
  if (dtype == PLUGRAD_BF16) return {cublas::kBFloat16, cublas::kCompute32};
  if (dtype == PLUGRAD_F16) return {cublas::kFloat16, cublas::kCompute32};
  return {cublas::kFloat32, tf32 ? cublas::kCompute32Tf32 : cublas::kCompute32};
}

// Multiplies with cuBLAS. Returns false, with no product submitted, if cuBLAS is absent or does not accept the operands.
bool multiply_by_blas(const Submission& submission, const Product& p, uint8_t dtype, bool tf32) {
  const BlasHandle* own = submission.stream().blas.load(std::memory_order_acquire);
  const std::optional<PlainOperands> operands = own ? plain_operands(p) : std::nullopt;
  if (!operands) return false;
  const auto& [a, b, c] = *operands;
  const CudaTypes types = types_of(dtype, tf32);
  const BlasCall call{submission, *own, p, a, b, c, types.data, types.compute, static_cast<int64_t>(element_size(dtype))};
  const int64_t run = p.batch.rank ? p.batch.extent[0] : 1, count = static_cast<int64_t>(p.batch.count);
  const bool in_runs = is_in_few_runs(p.batch, run);
  const int64_t most = in_runs ? run : BlasHandle::kPointers;
  for (int64_t first = 0; first < count; first += most) {
    const int batches = static_cast<int>(std::min(most, count - first));
    const cublas::Status status = in_runs ? call.by_strides(first, batches) : call.by_pointers(first, batches);
    submission.launched();
    if (status == cublas::kSuccess) continue;
    if (first == 0) return false;
    throw BackendError(PLUGRAD_INTERNAL, "cuBLAS returned status " + std::to_string(status));
  }
  return true;
}

// Whether each row of the output gets the same contiguous row.
bool is_row(const plugrad_view& added) {
  for (int d = 0; d < added.rank - 1; ++d)
    if (stride_of(added, d)) return false;
  return added.shape[added.rank - 1] == 1 || stride_of(added, added.rank - 1) == 1;
}

// Multiplies and adds a row by cublasLt. Returns false, with nothing submitted, if it does not serve.
bool multiply_and_add_row(const Submission& submission, const Product& p, const plugrad_view& added, bool tf32) {
  const BlasHandle* own = submission.stream().blas.load(std::memory_order_acquire);
  const BlasLt* const lt = own ? submission.backend().blas()->lt.get() : nullptr;
  if (!lt || added.dtype == PLUGRAD_F64 || p.is_transposed || p.batch.rank || !is_row(added)) return false;
  const std::optional<PlainOperands> operands = plain_operands(p);
  if (!operands) return false;
  const auto& [a, b, c] = *operands;
  const CudaTypes types = types_of(added.dtype, tf32);
  const BiasProduct product{
      b.operation(), a.operation(), types.data, types.compute,           p.n,     p.m, p.k, b.leading, a.leading,
      c.leading,     p.b.base,      p.a.base,   data<const char>(added), p.c.base};
  const bool done = submission.stream().bias_products.run(*lt, *own, submission.handle(), product);
  submission.launched();
  return done;
}

template <class T> void matmul(const Call& call, const Submission& submission) {
  const Product product(call);
  const bool tf32 = (call.op().flags & PLUGRAD_TF32) || submission.backend().tf32();
  if (call.op().inputs == 3) {
    if (multiply_and_add_row(submission, product, call.in(2), tf32)) return;
    copy_floating(call.out(), call.in(2), submission);
  }
  if (!multiply_by_blas(submission, product, element_dtype<T>, tf32)) multiply_by_tiles<T>(submission, product);
}

template <class... T> constexpr auto rows(Types<T...>) {
  constexpr uint32_t kFlags = kPlainFlags | PLUGRAD_ACCUMULATE;
  return join(std::array{kernel<submit<matmul<T>>>(PLUGRAD_OP_MATMUL, element_dtype<T>, kMemoryOnly, kFlags)...},
              std::array{kernel<submit<matmul<T>>>(PLUGRAD_OP_MATMUL_ADD, element_dtype<T>, kMemoryOnly)...});
}
constexpr auto kRows = rows(kWithHalves);

}  // namespace

Product::Product(const Call& call) : adds(call.accumulates() || call.op().inputs == 3) {
  const plugrad_view &left = call.in(0), &right = call.in(1), &out = call.out();
  m = out.shape[out.rank - 2];
  n = out.shape[out.rank - 1];
  k = left.shape[left.rank - 1];
  a = matrix_of(left);
  b = matrix_of(right);
  c = matrix_of(out);
  for (int d = out.rank - 3; d >= 0; --d)
    batch.add(out.shape[d], {stride_of(out, d), stride_of(left, d), stride_of(right, d)});
  if (n > 1 && c.column != 1 && (c.row == 1 || m == 1)) transpose();
  fold();
  batch.close();
}

// Rewrites the product as (a b)^T = b^T a^T, to make the output's rows contiguous.
void Product::transpose() {
  is_transposed = true;
  std::swap(m, n);
  std::swap(a, b);
  for (Matrix* matrix : {&a, &b, &c}) std::swap(matrix->row, matrix->column);
  for (uint32_t d = 0; d < batch.rank; ++d) std::swap(batch.stride[1][d], batch.stride[2][d]);
}

// Merges evenly spaced left operands with a common right operand into a single tall left operand.
void Product::fold() {
  if (batch.rank != 1 || batch.stride[2][0] != 0 || m == 1) return;
  if (batch.stride[1][0] != m * a.row || batch.stride[0][0] != m * c.row) return;
  m *= batch.extent[0];
  batch = {};
}

Rows matmul_rows() { return kRows; }

}  // namespace plugrad::cuda
