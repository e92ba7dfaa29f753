#include <plugrad/ops/layers.hpp>

#include <core/ops/argument.hpp>
#include <core/runtime/observe/observer.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/views.hpp>

#include <cmath>
#include <optional>
#include <string>

namespace plugrad {
namespace {
void require_table(const char* name, const Tensor& weight, const Tensor& indices) {
  require_defined(weight, name);
  require_integer(name, indices, "indices");
  if (weight.rank() != 2) refuse(name, "weight has shape " + weight.shape().text() + ": expected (v, d)");
}

std::optional<int64_t> normal_row(const char* name, const Tensor& weight, std::optional<int64_t> row) {
  if (row && (*row < -weight.size(0) || *row >= weight.size(0)))
    refuse(name, "padding_idx is " + std::to_string(*row) + ", but weight has " + std::to_string(weight.size(0)) +
                     " rows: give one of them");
  return row && *row < 0 ? *row + weight.size(0) : row;
}

// The rows (n, d) at flat indices (n).
Tensor rows_of(const Tensor& weight, const Tensor& indices) {
  const int64_t count = indices.count();
  return gather(weight, 0, expand(reshape(indices, {count, 1}), {count, weight.size(1)}));
}
}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx) {
  require_table("embedding", weight, indices);
  const std::optional<int64_t> padding = normal_row("embedding", weight, padding_idx);
  Shape shape = indices.shape();
  shape.push_back(weight.size(1));
  const Tensor rows = reshape(rows_of(weight, indices), shape);
  return padding ? where(unsqueeze(eq(indices, *padding), -1), rows.detach(), rows) : rows;
}

// --- Bags.

namespace {
constexpr const char* kBag = "embedding_bag";

struct Bags {
  Tensor indices, bag, counted;  // (n): of the table's rows, of each row's bag, and whether it counts
  int64_t count;
};

// Bags of equal lengths.
Bags bags_of_rows(const Tensor& indices, const Tensor& offsets) {
  if (offsets.defined()) refuse(kBag, "offsets are given for indices of two axes, whose rows are the bags: leave them out");
  const Tensor first = arange(0, indices.size(0), 1, DType::i64, indices.device());
  return {reshape(indices, {indices.count()}),
          reshape(expand(unsqueeze(first, 1), indices.shape()), {indices.count()}),
          {},
          indices.size(0)};
}

// Checks that bags are consecutive parts of the indices. Waits for the device; skips the check while a step is recorded.
void require_rising(const Tensor& offsets, int64_t n) {
  if (!offsets.count() || observe::hides_elements()) return;
  const NoGrad unrecorded;
  const Tensor whole = cast(offsets, DType::i64);
  const bool rises = offsets.count() == 1 || min(diff(whole)).item<int64_t>() >= 0;
  const int64_t first = select(whole, 0, 0).item<int64_t>(), last = select(whole, 0, -1).item<int64_t>();
  if (first != 0 || !rises || last > n)
    refuse(kBag, "offsets begin with " + std::to_string(first) + ", end with " + std::to_string(last) +
                     (rises ? "" : " and fall in between") + ": expected 0, then none smaller than the one before it, or " +
                     "larger than the number of indices, " + std::to_string(n));
}

// The number of offsets up to each position, less 1, is its bag.
Bags bags_by_offsets(const Tensor& indices, const Tensor& offsets, bool include_last_offset) {
  require_integer(kBag, offsets, "offsets");
  const int64_t n = indices.count(), count = offsets.count() - include_last_offset;
  if (offsets.rank() != 1 || count < 0) refuse(kBag, "offsets have shape " + offsets.shape().text() + ": expected (b,)");
  require_rising(offsets, n);
  const Tensor starts = slice(cast(offsets, DType::i64), 0, 0, count);
  const Tensor marks = scatter_add(zeros({n + 1}, DType::i64, indices.device()), 0, starts, ones_like(starts));
  return {indices, sub(slice(cumsum(marks, 0), 0, 0, n), 1), {}, count};
}

// The rows' weights, 0 for rows that do not count.
Tensor row_weights(const Bags& bags, const Tensor& per_sample_weights, DType dtype) {
  const Tensor counts = cast(bags.counted, dtype);
  if (!per_sample_weights.defined()) return counts;
  return where(bags.counted, cast(reshape(per_sample_weights, {bags.indices.count()}), dtype), 0);
}

Tensor sums_of(const Tensor& rows, const Bags& bags) {
  const Tensor bag = expand(unsqueeze(bags.bag, 1), rows.shape());
  return scatter_add(zeros({bags.count, rows.size(1)}, rows.dtype(), rows.device()), 0, bag, rows);
}

// The rows as (b, longest, d), where longest is the largest bag's length, and -infinity where a bag has no row. Waits for
// the device.
Tensor largest_of(const Tensor& rows, const Bags& bags) {
  const Tensor counts = cast(bags.counted, DType::i64);
  const Tensor lengths = scatter_add(zeros({bags.count}, DType::i64, rows.device()), 0, bags.bag, counts);
  const int64_t longest = bags.count ? max(lengths).item<int64_t>() : 0, n = rows.size(0), width = rows.size(1);
  if (!longest) return zeros({bags.count, width}, rows.dtype(), rows.device());
  // The place of each row among the counted rows of its bag; a row that does not count goes behind all bags.
  const Tensor ends = cumsum(lengths, 0), number = sub(cumsum(counts, 0), 1);
  const Tensor within = sub(number, gather(sub(ends, lengths), 0, bags.bag));
  const Tensor place = where(bags.counted, add(mul(bags.bag, longest), within), bags.count * longest);
  const Tensor places = scatter_add(zeros({bags.count * longest + 1}, DType::i64, rows.device()), 0, place,
                                    mul(add(arange(0, n, 1, DType::i64, rows.device()), 1), counts));
  const Tensor source = slice(places, 0, 0, bags.count * longest), some = gt(source, 0);
  const Tensor chosen = where(unsqueeze(some, 1), rows_of(rows, maximum(sub(source, 1), 0)), -HUGE_VAL);
  const Tensor all = reshape(chosen, {bags.count, longest, width});
  const Tensor largest = squeeze(gather(all, 1, argmax(all.detach(), {1}, true)), {1});
  return where(unsqueeze(eq(lengths, 0), 1), 0, largest);
}

Tensor of_bags(const Tensor& rows, const Bags& bags, BagMode mode, const Tensor& per_sample_weights) {
  if (mode == BagMode::max) return largest_of(rows, bags);
  const Tensor weights = row_weights(bags, per_sample_weights, rows.dtype());
  const Tensor sums = sums_of(mul(rows, unsqueeze(weights, 1)), bags);
  if (mode == BagMode::sum) return sums;
  const Tensor counts = scatter_add(zeros({bags.count}, rows.dtype(), rows.device()), 0, bags.bag, weights);
  return div(sums, unsqueeze(maximum(counts, 1), 1));
}
}  // namespace

Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, BagMode mode,
                     const Tensor& per_sample_weights, bool include_last_offset, std::optional<int64_t> padding_idx) {
  require_table(kBag, weight, indices);
  require_floating(kBag, weight);
  if (indices.rank() < 1 || indices.rank() > 2 || (indices.rank() == 1 && !offsets.defined()))
    refuse(kBag, "indices have shape " + indices.shape().text() + ": expected (b, n), or (n) with offsets");
  if (per_sample_weights.defined() && (mode != BagMode::sum || per_sample_weights.shape() != indices.shape()))
    refuse(kBag, "per_sample_weights have shape " + per_sample_weights.shape().text() + " and indices " +
                     indices.shape().text() + ": expected equal shapes, and mode sum");
  const std::optional<int64_t> padding = normal_row(kBag, weight, padding_idx);
  const Tensor whole = cast(indices, DType::i64);
  Bags bags = whole.rank() == 2 ? bags_of_rows(whole, offsets) : bags_by_offsets(whole, offsets, include_last_offset);
  bags.counted = padding ? ne(bags.indices, *padding) : ones(bags.indices.shape(), DType::boolean, weight.device());
  const Tensor rows = at_least_f32(rows_of(weight, bags.indices));
  return cast(of_bags(rows, bags, mode, per_sample_weights), weight.dtype());
}

}  // namespace plugrad
