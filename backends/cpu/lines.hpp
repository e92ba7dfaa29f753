// Ops along one axis: operands of equal shape, cut into lines. Lines go through buffers unless they are contiguous.
#pragma once
#include <backends/cpu/operand.hpp>

#include <span>

namespace plugrad::cpu {

// Computes line number `index`, row-major among the remaining dimensions; lines[k] is contiguous.
using LineFunction = void (*)(const void* context, char* const* lines, int64_t index);

class Lines {
 public:
  // The first `outputs` views are written, and further views are read; the first view is not an immediate. axis counts from
  // 0.
  Lines(std::span<const plugrad_view* const> views, int outputs, int axis);

  uint64_t workspace() const;  // returns the bytes for run
  void run(int threads, char* workspace, LineFunction function, const void* context) const;

 private:
  static constexpr int kMaxOperands = 3;
  struct Buffers;
  void choose_tile();
  void run_tile(int64_t index, char* buffers, LineFunction function, const void* context) const;
  bool is_packed(int k) const { return packed_ >> k & 1; }
  int64_t buffer_bytes() const { return rows_ * length_ * size_; }

  int operands_, outputs_, rank_ = 0;  // rank_: the number of remaining dimensions, at least 1
  int64_t shape_[PLUGRAD_MAX_RANK];
  int64_t strides_[kMaxOperands][PLUGRAD_MAX_RANK], along_[kMaxOperands];  // bytes
  char* base_[kMaxOperands];
  alignas(8) char slots_[kMaxOperands][8];
  unsigned packed_ = 0;
  int64_t length_, size_;
  int64_t rows_ = 1, across_ = 1, tiles_ = 1;  // lines of a tile; tiles along the last dimension; all tiles
};

}  // namespace plugrad::cpu
