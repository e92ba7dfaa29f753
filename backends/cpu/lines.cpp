#include <backends/cpu/lines.hpp>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/streaming.hpp>
#include <backends/cpu/tile.hpp>

#include <hwy/cache_control.h>

#include <algorithm>
#include <utility>

namespace plugrad::cpu {
namespace {

constexpr int64_t kOnStack = 16384;  // bytes of an operand's tile without workspace
constexpr int64_t kSlots = 64;       // the most tiles in the workspace at once
constexpr int64_t kWeight = 8;       // the work for an element, in additions

}  // namespace

Lines::Lines(std::span<const plugrad_view* const> views, int outputs, int axis)
    : operands_(static_cast<int>(views.size())), outputs_(outputs), length_(views[0]->rank ? views[0]->shape[axis] : 1),
      size_(static_cast<int64_t>(element_size(views[0]->dtype))) {
  for (int d = 0; d < views[0]->rank; ++d) {
    if (d == axis || views[0]->shape[d] == 1) continue;
    for (int k = 0; k < operands_; ++k) strides_[k][rank_] = step(*views[k], d);
    shape_[rank_++] = views[0]->shape[d];
  }
  if (rank_ == 0) {
    shape_[rank_++] = 1;
    for (int k = 0; k < operands_; ++k) strides_[k][0] = 0;
  }
  for (int k = 0; k < operands_; ++k) {
    base_[k] = address(*views[k], slots_[k]);
    along_[k] = views[0]->rank ? step(*views[k], axis) : 0;
    if (length_ > 1 && along_[k] != size_) packed_ |= 1u << k;
  }
  choose_tile();
}

// Tiles extend along the dimension in which the first packed operand is nearly contiguous, to use whole cache lines.
void Lines::choose_tile() {
  if (packed_) {
    const int k = __builtin_ctz(packed_);
    int near = rank_ - 1;
    for (int d = 0; d < rank_; ++d)
      if (strides_[k][d] != 0 && std::abs(strides_[k][d]) < std::abs(strides_[k][near])) near = d;
    for (int d = near; d < rank_ - 1; ++d) {
      std::swap(shape_[d], shape_[d + 1]);
      for (int j = 0; j < operands_; ++j) std::swap(strides_[j][d], strides_[j][d + 1]);
    }
  }
  const int64_t wanted = packed_ ? std::max<int64_t>(16, kOnStack / (size_ * length_)) : kGrain / kWeight / length_;
  rows_ = std::clamp<int64_t>(wanted, 1, shape_[rank_ - 1]);
  across_ = (shape_[rank_ - 1] + rows_ - 1) / rows_;
  tiles_ = across_;
  for (int d = 0; d < rank_ - 1; ++d) tiles_ *= shape_[d];
}

uint64_t Lines::workspace() const {
  if (!packed_ || buffer_bytes() <= kOnStack) return 0;
  return static_cast<uint64_t>(std::min(tiles_, kSlots) * __builtin_popcount(packed_) * buffer_bytes());
}

void Lines::run(int threads, char* workspace, LineFunction function, const void* context) const {
  const bool on_stack = buffer_bytes() <= kOnStack;
  if (packed_ && !on_stack) {
    const int64_t slots = std::min(tiles_, kSlots), slot_bytes = __builtin_popcount(packed_) * buffer_bytes();
    return parallel(threads, slots, [&](int64_t slot) {
      for (int64_t t = slot; t < tiles_; t += slots) run_tile(t, workspace + slot * slot_bytes, function, context);
      hwy::FlushStream();
    });
  }
  const int64_t each = std::max<int64_t>(1, kGrain / kWeight / (rows_ * length_));
  parallel_pass(threads, (tiles_ + each - 1) / each, tiles_ * rows_ * length_ * size_ * operands_, [&](int64_t task) {
    alignas(64) char buffers[kMaxOperands * kOnStack];
    for (int64_t t = task * each; t < std::min(tiles_, (task + 1) * each); ++t) run_tile(t, buffers, function, context);
    hwy::FlushStream();  // stores that bypass the caches are visible to other threads after the task
  });
}

void Lines::run_tile(int64_t index, char* buffers, LineFunction function, const void* context) const {
  const int last = rank_ - 1;
  const int64_t first = index % across_ * rows_, rows = std::min(rows_, shape_[last] - first);
  int64_t rest = index / across_;
  Tile tiles[kMaxOperands], lines[kMaxOperands];
  for (int k = 0; k < operands_; ++k) tiles[k] = {base_[k] + first * strides_[k][last], strides_[k][last], along_[k]};
  for (int d = last - 1; d >= 0; rest /= shape_[d--])
    for (int k = 0; k < operands_; ++k) tiles[k].data += rest % shape_[d] * strides_[k][d];
  for (int k = 0; k < operands_; ++k) {
    lines[k] = tiles[k];
    if (!is_packed(k)) continue;
    lines[k] = {buffers, length_ * size_, size_};
    buffers += buffer_bytes();
    if (k >= outputs_) copy_tile(lines[k], tiles[k], rows, length_, static_cast<int>(size_));
  }
  char* at[kMaxOperands];
  for (int64_t r = 0; r < rows; ++r) {
    for (int k = 0; k < operands_; ++k) at[k] = lines[k].data + r * lines[k].row;
    function(context, at, index / across_ * shape_[last] + first + r);
  }
  for (int k = 0; k < outputs_; ++k)
    if (is_packed(k)) copy_tile(tiles[k], lines[k], rows, length_, static_cast<int>(size_));
}

}  // namespace plugrad::cpu
