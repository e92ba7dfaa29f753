// The extension "plugrad.linalg/0" of a plugin: factorisations of matrices in host memory. The ops cannot express them.
// The host uses the extension for tensors of the plugin's own devices with host memory and no streams, and copies matrices
// of other devices to such a device if the program allows it.
// C11 and C++20. The extension is optional; a plugin with the extension provides every function.
//
// Getting it  backend->get_extension(PLUGRAD_LINALG) returns a plugrad_linalg, or null. The plugin owns it; it is constant
//             and lives as long as the process, and applies to all devices of the plugin with host memory and no streams.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist. If a function
//             changes its meaning, the extension gets a new name, "plugrad.linalg/1", and a plugin may offer both.
// Threads     Any thread may call any function at any time. A function computes on the calling thread or on threads of the
//             plugin, and its work is complete when it returns.
// Ownership   The host owns all memory. A function keeps no pointer, allocates its own workspace, and frees it.
// Errors      A matrix that cannot be factored is not an error of the call: see `failed`. Otherwise statuses and reports are
//             as abi.h states them; OUT_OF_MEMORY: there was no memory for the workspace. After any status but OK the
//             outputs are unspecified.
//
// dtype is PLUGRAD_F32 or PLUGRAD_F64, for lu, swap_rows, solve_triangular and cholesky also PLUGRAD_C64 or PLUGRAD_C128,
// and holds for all matrices of a call but pivots. All matrices of a call have the same batch. Any extent may be 0. Outputs
// overlap neither each other nor an input, and each element of an output has its own place in memory; an input may have
// strides of 0. Strides are not negative. Input matrices are read only where stated.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_LINALG "plugrad.linalg/0"

// Element (i, j) of matrix number b lies at data plus (b * batch_stride + i * row_stride + j * column_stride) elements, at
// least aligned to its own size. A vector has one column.
typedef struct plugrad_matrices {
  void* data;
  int64_t batch, rows, columns;
  int64_t batch_stride, row_stride, column_stride;
} plugrad_matrices;

enum {                           // flags
  PLUGRAD_LINALG_UPPER = 1,      // solve_triangular: the matrix is upper triangular, not lower
  PLUGRAD_LINALG_UNIT = 2,       // solve_triangular: its diagonal is 1 and is not read
  PLUGRAD_LINALG_BACKWARDS = 4,  // swap_rows: from the last pivot to the first
};

// `failed` has a number for each matrix of the batch: 0, or a position counted from 1, as each function states. After a
// failure the function goes on with the remaining matrices.
typedef struct plugrad_linalg {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  // a (m, n) with its rows swapped is L U. Stores L below the diagonal of lu (m, n), without its diagonal of ones, and U on
  // and above it. pivots (min(m, n), 1) of int32_t are the swaps: for i = 1, 2, ... row i was swapped with row
  // pivots[i - 1], which is at least i; its element was the largest of the column. failed: the first pivot equal to 0; the
  // factors are complete, with a 0 on U's diagonal.
  plugrad_status (*lu)(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* lu,
                       const plugrad_matrices* pivots, int32_t* failed);
  // Swaps the rows of x (m, k) in place as pivots (p, 1) of int32_t say, p <= m.
  plugrad_status (*swap_rows)(plugrad_device* device, uint32_t dtype, const plugrad_matrices* pivots,
                              const plugrad_matrices* x, uint32_t flags);
  // Replaces x (n, k) by the solution y of a y = x for a triangular a (n, n). The opposite triangle of a is not read.
  // Divides by zeros of the diagonal.
  plugrad_status (*solve_triangular)(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a,
                                     const plugrad_matrices* x, uint32_t flags);
  // Stores the lower triangular l (n, n) with l l^H = a, and 0 above its diagonal, which is real and positive. Reads the
  // lower triangle of a. failed: the order of a's first leading minor that is not positive; l is then unspecified.
  plugrad_status (*cholesky)(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* l,
                             int32_t* failed);
  // a (m, n) is q r. q (m, k) has orthonormal columns, and r (k, n) is 0 below its diagonal; k is min(m, n) or m. q may be
  // null: only r is computed.
  plugrad_status (*qr)(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* q,
                       const plugrad_matrices* r);
  // The eigenvalues (n, 1), ascending, and orthonormal eigenvectors, the columns of vectors (n, n), of a symmetric a. Reads
  // the lower triangle of a. vectors may be null. failed: 1 if the iteration did not converge, or a is not finite.
  plugrad_status (*eigh)(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* values,
                         const plugrad_matrices* vectors, int32_t* failed);
  // a (m, n) is u diag(s) vh with s (min(m, n), 1), descending and not negative. u has min(m, n) or m orthonormal columns,
  // vh min(m, n) or n orthonormal rows. u and vh may be null, but only together. failed: as eigh.
  plugrad_status (*svd)(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* u,
                        const plugrad_matrices* s, const plugrad_matrices* vh, int32_t* failed);
} plugrad_linalg;

static_assert(sizeof(plugrad_matrices) == 56 && offsetof(plugrad_matrices, batch) == 8, "layout");
static_assert(offsetof(plugrad_matrices, batch_stride) == 32, "layout");
static_assert(offsetof(plugrad_linalg, lu) == 8 && offsetof(plugrad_linalg, swap_rows) == 16, "layout");
static_assert(offsetof(plugrad_linalg, solve_triangular) == 24 && offsetof(plugrad_linalg, cholesky) == 32, "layout");
static_assert(offsetof(plugrad_linalg, qr) == 40 && offsetof(plugrad_linalg, eigh) == 48, "layout");
static_assert(offsetof(plugrad_linalg, svd) == 56 && sizeof(plugrad_linalg) == 64, "layout");

#ifdef __cplusplus
}
#endif
