// Plain loops for devices whose memory the host can read and write: every op of tier 0 and all elementwise ones, in every
// dtype and layout. A backend begins with these rows and puts its own before them, one by one; of several rows that serve a
// call the first wins. They are slow: each element is found by its index.
#pragma once
#include <plugrad/sdk/loops/contraction.hpp>
#include <plugrad/sdk/loops/elementwise.hpp>
#include <plugrad/sdk/loops/indexing.hpp>
#include <plugrad/sdk/loops/random.hpp>
#include <plugrad/sdk/loops/reduction.hpp>

namespace plugrad::loops {

inline constexpr auto kRows = join(kElementwiseRows, kReductionRows, kContractionRows, kIndexingRows, kRandomRows);

}  // namespace plugrad::loops
