// The kernel rows of this backend, compiled once for each instruction set. The device selects one set when it is opened, so
// a call needs no further dispatch. A target is one of Highway's numbers (HWY_AVX2, ...).
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
template <int64_t target> void append_random(RowList& rows);
template <int64_t target> void append_matmul(RowList& rows);
template <int64_t target> void append_convolutions(RowList& rows);
template <int64_t target> void append_pooling(RowList& rows);
void append_indexing(RowList& rows);  // moves memory: wider vectors gain nothing
void append_sorting(RowList& rows);   // the same

}  // namespace plugrad::cpu
