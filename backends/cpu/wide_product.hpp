// A matrix product of a narrow type, computed in its wider type: the operands are widened into the workspace, and the result
// is rounded from there.
#pragma once
#include <backends/cpu/operand.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/product.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <numeric>

namespace plugrad::cpu {

template <class T> class WideProduct {
 public:
  using W = ComputeType<T>;

  // The workspace of the call: the widened operands, followed by the workspace of the wide product.
  static uint64_t workspace(const Call& call) {
    const WideProduct wide(call, nullptr);
    return wide.bytes_ + product_workspace<W>(Call(nullptr, nullptr, &wide.op_));
  }

  explicit WideProduct(const Call& call) : WideProduct(call, call.workspace()) {}

  // The op on the widened operands.
  const plugrad_op* op() {
    const int threads = threads_of(call_);
    for (int i = call_.accumulates() ? 0 : 1; i < op_.outputs + op_.inputs; ++i)
      convert(threads, *call_.op().views[i], views_[i], [](T& narrow, W& wide) { wide = widened(narrow); });
    return &op_;
  }
  void round_result() {
    convert(threads_of(call_), call_.out(), views_[0], [](T& narrow, W& wide) { narrow = static_cast<T>(wide); });
  }

 private:
  static constexpr int kOperands = 4;
  using Axes = std::array<int, PLUGRAD_MAX_RANK>;

  WideProduct(const Call& call, char* workspace) : call_(call), op_(call.op()) {
    for (int i = 0; i < op_.outputs + op_.inputs; ++i) {
      pointers_[i] = &views_[i];
      views_[i] = wide_view(*call.op().views[i], workspace, bytes_);
      bytes_ += (extent(views_[i]) * sizeof(W) + 63) / 64 * 64;
    }
    op_.views = pointers_;
    op_.workspace_offset += bytes_;
    op_.workspace_bytes -= std::min(bytes_, op_.workspace_bytes);
  }
  WideProduct(const WideProduct&) = delete;

  // Returns the number of distinct elements: a broadcast batch is widened once.
  static uint64_t extent(const plugrad_view& v) {
    uint64_t count = 1;
    for (int d = 0; d < v.rank; ++d) count *= v.strides[d] == 0 ? 1 : static_cast<uint64_t>(v.shape[d]);
    return count;
  }
  // The axes from the longest step in memory to the shortest; axes with the stride 0 come first.
  static Axes in_memory_order(const plugrad_view& v) {
    Axes axes{};
    std::iota(axes.begin(), axes.begin() + v.rank, 0);
    const auto step = [&](int d) { return v.strides[d] == 0 ? INT64_MAX : std::abs(v.strides[d]); };
    std::stable_sort(axes.begin(), axes.begin() + v.rank, [&](int a, int b) { return step(a) > step(b); });
    return axes;
  }
  // Dense in the order of the narrow operand's memory.
  static plugrad_view wide_view(const plugrad_view& narrow, char* base, uint64_t offset) {
    plugrad_view wide = narrow;
    wide.buffer = reinterpret_cast<plugrad_buffer*>(base);
    wide.offset = offset;
    wide.dtype = element_dtype<W>;
    wide.layout = narrow.layout & (PLUGRAD_WIDE_INDEX | PLUGRAD_BROADCAST | PLUGRAD_STRIDED);
    if (wide.layout & PLUGRAD_BROADCAST) wide.layout |= PLUGRAD_STRIDED;
    const Axes axes = in_memory_order(narrow);
    int64_t stride = 1;
    for (int i = narrow.rank - 1; i >= 0; --i) {
      const int d = axes[i];
      const bool stands = narrow.strides[d] == 0 && narrow.shape[d] > 1;
      wide.strides[d] = stands ? 0 : stride;
      if (!stands) stride *= narrow.shape[d];
    }
    return wide;
  }

  // Calls body for each pair of elements, in the order of memory.
  template <class Body> static void convert(int threads, const plugrad_view& narrow, const plugrad_view& wide, Body body) {
    const Axes axes = in_memory_order(narrow);
    const int last = axes[narrow.rank - 1];
    const int64_t columns = wide.strides[last] == 0 ? 1 : wide.shape[last], step = narrow.strides[last];
    const int64_t rows = static_cast<int64_t>(extent(wide)) / columns;
    const int64_t each = std::max<int64_t>(1, 16384 / columns);
    parallel(threads, (rows + each - 1) / each, [&](int64_t task) {
      for (int64_t row = task * each; row < std::min(rows, (task + 1) * each); ++row) {
        T* from = data<T>(narrow);
        W* to = data<W>(wide);
        int64_t rest = row;
        for (int i = narrow.rank - 2; i >= 0; --i) {
          const int d = axes[i];
          if (wide.strides[d] == 0) continue;
          from += rest % wide.shape[d] * narrow.strides[d];
          to += rest % wide.shape[d] * wide.strides[d];
          rest /= wide.shape[d];
        }
        if (step == 1)
          for (int64_t c = 0; c < columns; ++c) body(from[c], to[c]);
        else
          for (int64_t c = 0; c < columns; ++c) body(from[c * step], to[c]);
      }
    });
  }

  const Call& call_;
  plugrad_op op_;
  plugrad_view views_[kOperands];
  const plugrad_view* pointers_[kOperands];
  uint64_t bytes_ = 0;
};

}  // namespace plugrad::cpu
