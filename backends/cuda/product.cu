#include <backends/cuda/product.hpp>

#include <utility>

namespace plugrad::cuda {
namespace {

constexpr int64_t kMostCalls = 64;  // of cuBLAS for one op

Matrix matrix_of(const plugrad_view& view) {
  return {data<char>(view), stride_of(view, view.rank - 2), stride_of(view, view.rank - 1)};
}

// A matrix as BLAS knows it: contiguous rows, or contiguous columns, and the rest at least as far apart as they are long.
struct Plain {
  bool serves, is_transposed;
  int leading;
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

// What all calls of one product have in common. BLAS counts columns first: to it our matrices are transposed, and
// (a b)^T = b^T a^T.
struct BlasCall {
  const Blas& blas;
  cublas::Handle handle;
  const Product& p;
  Plain a, b, c;
  int type, compute;
  uint64_t size;  // of an element

  cublas::Status operator()(const Reach<3>& at, int batches) const {
    const double alpha64 = 1, beta64 = p.adds;
    const float alpha32 = 1, beta32 = p.adds;
    const bool wide = type == cublas::kFloat64;
    const void *alpha = wide ? static_cast<const void*>(&alpha64) : &alpha32,
               *beta = wide ? static_cast<const void*>(&beta64) : &beta32;
    const char *pa = p.a.base + at.at[1] * int64_t(size), *pb = p.b.base + at.at[2] * int64_t(size);
    char* pc = p.c.base + at.at[0] * int64_t(size);
    const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    const int turn_a = a.is_transposed ? cublas::kTranspose : cublas::kNoTranspose;
    const int turn_b = b.is_transposed ? cublas::kTranspose : cublas::kNoTranspose;
    if (batches == 1)
      return blas.gemm(handle, turn_b, turn_a, n, m, k, alpha, pb, type, b.leading, pa, type, a.leading, beta, pc, type,
                       c.leading, compute, cublas::kDefaultAlgorithm);
    return blas.gemm_strided_batched(handle, turn_b, turn_a, n, m, k, alpha, pb, type, b.leading, p.batch.stride[2][0], pa,
                                     type, a.leading, p.batch.stride[1][0], beta, pc, type, c.leading, p.batch.stride[0][0],
                                     batches, compute, cublas::kDefaultAlgorithm);
  }
};

}  // namespace

Product::Product(const Call& call) : adds(call.accumulates()) {
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

// (a b)^T = b^T a^T, so that the output's rows are contiguous.
void Product::transpose() {
  std::swap(m, n);
  std::swap(a, b);
  for (Matrix* matrix : {&a, &b, &c}) std::swap(matrix->row, matrix->column);
  for (uint32_t d = 0; d < batch.rank; ++d) std::swap(batch.stride[1][d], batch.stride[2][d]);
}

// Left operands that follow each other evenly, over one right operand, are one tall left operand.
void Product::fold() {
  if (batch.rank != 1 || batch.stride[2][0] != 0 || m == 1) return;
  if (batch.stride[1][0] != m * a.row || batch.stride[0][0] != m * c.row) return;
  m *= batch.extent[0];
  batch = {};
}

bool multiply_by_blas(const Submission& submission, const Product& p, uint8_t dtype, bool tf32) {
  const cublas::Handle handle = submission.stream().blas.load(std::memory_order_acquire);
  if (!handle || std::max({p.m, p.n, p.k}) >= INT32_MAX) return false;
  const Plain a = plain(p.a, p.m, p.k), b = plain(p.b, p.k, p.n), c = plain(p.c, p.m, p.n);
  if (!a.serves || !b.serves || !c.serves || c.is_transposed) return false;
  const int64_t inner = p.batch.rank ? p.batch.extent[0] : 1, calls = static_cast<int64_t>(p.batch.count) / inner;
  const bool is_ascending =
      !p.batch.rank || (p.batch.stride[0][0] > 0 && p.batch.stride[1][0] >= 0 && p.batch.stride[2][0] >= 0);
  if (calls > kMostCalls || inner >= INT32_MAX || !is_ascending) return false;
  const bool wide = dtype == PLUGRAD_F64;
  const BlasCall call{*submission.backend().blas(),
                      handle,
                      p,
                      a,
                      b,
                      c,
                      wide ? cublas::kFloat64 : cublas::kFloat32,
                      wide   ? cublas::kCompute64
                      : tf32 ? cublas::kCompute32Tf32
                             : cublas::kCompute32,
                      element_size(dtype)};
  for (int64_t i = 0; i < calls; ++i) {
    const cublas::Status status = call(p.batch.reach(static_cast<uint64_t>(i * inner)), static_cast<int>(inner));
    submission.launched();
    if (status == cublas::kSuccess) continue;
    if (i == 0) return false;
    throw BackendError(PLUGRAD_INTERNAL, "cuBLAS answers status " + std::to_string(status));
  }
  return true;
}

}  // namespace plugrad::cuda
