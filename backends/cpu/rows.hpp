// The kernel rows of this backend, compiled once for each instruction set. The device selects one set when it is opened, so
// a call needs no further dispatch. A target is a number of Highway's (HWY_AVX2, ...).
#pragma once
#include <plugrad/sdk/backend.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::cpu {

using RowList = std::vector<KernelRow>;
inline void append(RowList& rows, Rows more) { rows.insert(rows.end(), more.begin(), more.end()); }

template <int64_t target> void append_arithmetic(RowList& rows);
template <int64_t target> void append_functions(RowList& rows);
template <int64_t target> void append_comparisons(RowList& rows);
template <int64_t target> void append_casts(RowList& rows);
template <int64_t target> void append_updates(RowList& rows);
template <int64_t target> void append_reductions(RowList& rows);
template <int64_t target> void append_softmax(RowList& rows);
template <int64_t target> void append_softmax_backward(RowList& rows);
template <int64_t target> void append_norms(RowList& rows);
template <int64_t target> void append_channels(RowList& rows);
template <int64_t target> void append_scans(RowList& rows);
template <int64_t target> void append_fourier(RowList& rows);
template <int64_t target> void append_selection(RowList& rows);
template <int64_t target> void append_random(RowList& rows);
template <int64_t target> void append_matmul(RowList& rows);
template <int64_t target> void append_quantized(RowList& rows);
template <int64_t target> void append_convolutions(RowList& rows);
template <int64_t target> void append_pooling(RowList& rows);
template <int64_t target> void append_attention(RowList& rows);
// MATMUL in bf16 by AMX's tiles, or by AVX-512's products of pairs. They precede append_matmul's converting row.
void append_tile_products(RowList& rows);
void append_pair_products(RowList& rows);
// INTEGER_MATMUL by AVX-512's products of four bytes; nothing on processors without them.
void append_byte_products(RowList& rows);
void append_indexing(RowList& rows);  // moves memory: wider vectors gain nothing
void append_sorting(RowList& rows);   // the same

}  // namespace plugrad::cpu
