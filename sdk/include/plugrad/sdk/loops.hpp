// Plain loops for devices with memory that the host can read and write: every op of tier 0 and every elementwise op, in
// every dtype and layout. A backend begins with these rows, and puts more and more rows of its own before them; of several
// rows for a call the first wins. The loops are slow: they find each element by its index.
#pragma once
#include <plugrad/sdk/loops/contraction.hpp>
#include <plugrad/sdk/loops/elementwise.hpp>
#include <plugrad/sdk/loops/indexing.hpp>
#include <plugrad/sdk/loops/random.hpp>
#include <plugrad/sdk/loops/reduction.hpp>

namespace plugrad::loops {

inline constexpr auto kRows = join(kElementwiseRows, kReductionRows, kContractionRows, kIndexingRows, kRandomRows);

}  // namespace plugrad::loops
