#include <backends/cpu/quantized.hpp>

#include <backends/cpu/contraction.hpp>

#include <vector>

namespace plugrad::cpu {
namespace {

constexpr int64_t kTaskElements = 1 << 16;          // of the weight, for few rows of x
constexpr int64_t kTileColumns = 128, kDeep = 512;  // of a tile of the weight in f32
constexpr int64_t kLine = 16;                       // floats of a cache line
constexpr int64_t kFewRows = 2 * kFewVectors;       // so many rows of x gain more by reading codes twice than by a tile

// Hands out parts of a workspace; without a workspace, it measures the required size.
class Parts {
 public:
  explicit Parts(char* first) : first_(reinterpret_cast<float*>(first)) {}
  float* take(int64_t floats) {
    float* const part = first_ ? first_ + taken_ : nullptr;
    taken_ += round_up(floats, kLine);
    return part;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(taken_) * sizeof(float); }

 private:
  float* first_;
  int64_t taken_ = 0;
};

struct Sizes {
  explicit Sizes(const Call& call)
      : m(call.out().shape[0]), n(call.out().shape[1]), k(call.in(0).shape[1]), bits(call.in(1).shape[1] * 8 / k),
        groups(call.in(2).shape[1]), group(k / groups), has_minima(call.in(2).shape[2] == 2) {}
  bool few() const { return m <= kFewRows; }
  int64_t m, n, k, bits, groups, group;
  bool has_minima;
};

// The memory of one thread.
struct Slot {
  float *scales = nullptr, *minima = nullptr, *tile = nullptr, *panels = nullptr, *out = nullptr;
};

template <class T> class Plan {
 public:
  Plan(const Call& call, int64_t lanes, char* memory) : call_(call), s_(call), lanes_(lanes), parts_(memory) {
    if (!std::is_same_v<T, float>) wide_ = parts_.take(s_.m * s_.k);
    if (s_.few()) plan_words();
    const int64_t tasks = s_.few() ? ceil_div(s_.n, rows_of_task()) : ceil_div(s_.n, kTileColumns);
    slots_ = std::min<int64_t>(threads_of(call), tasks);
    for (int64_t i = 0; i < slots_; ++i) slots_of_.push_back(take_slot());
  }
  uint64_t bytes() const { return parts_.bytes(); }

  void run(const QuantizedKernels& kernels, const ProductKernels<float>& products) {
    const T* const x = data<T>(call_.in(0));
    if constexpr (!std::is_same_v<T, float>)
      for (int64_t i = 0; i < s_.m * s_.k; ++i) wide_[i] = widened(x[i]);
    const float* rows = wide_;
    if constexpr (std::is_same_v<T, float>) rows = x;
    if (s_.few()) multiply_rows(kernels, rows);
    else multiply_tiles(kernels, products, rows);
  }

 private:
  int64_t rows_of_task() const { return std::max<int64_t>(1, kTaskElements / s_.k); }
  int64_t block_floats() const { return (32 / s_.bits + 1) * lanes_; }

  Slot take_slot() {
    Slot slot;
    const int64_t rows = s_.few() ? rows_of_task() : kTileColumns;
    slot.scales = parts_.take(rows * s_.groups + lanes_);
    slot.minima = parts_.take(rows * s_.groups + lanes_);
    if (!std::is_same_v<T, float>) slot.out = parts_.take(s_.m * rows);
    if (s_.few()) return slot;
    slot.tile = parts_.take(kTileColumns * std::min(s_.k, kDeep));
    slot.panels = parts_.take(kTileColumns * std::min(s_.k, kDeep));
    return slot;
  }

  void plan_words() {
    const int64_t per = 32 / s_.bits, group = s_.group / per;  // in words
    words_.words = s_.k / per;
    words_.blocks = ceil_div(words_.words, lanes_);
    arranged_ = parts_.take(s_.m * words_.blocks * block_floats());
    // Whether a block lies within one group, and whether each of its groups lies within the block.
    const bool inside = s_.groups == 1 || group % lanes_ == 0, divides = lanes_ % group == 0;
    const int64_t each = inside || divides ? 2 * lanes_ : words_.blocks * lanes_;
    auto* const first = reinterpret_cast<int32_t*>(parts_.take(words_.blocks));
    auto* const index = reinterpret_cast<int32_t*>(parts_.take(each));
    if (!first) return;
    for (int64_t b = 0; b < words_.blocks; ++b) first[b] = static_cast<int32_t>(b * lanes_ / group);
    for (int64_t i = 0; i < each; ++i) {
      const bool last = divides && i >= lanes_;
      const int64_t place = divides ? i % lanes_ / group : std::min(i / group, s_.groups - 1);
      index[i] = static_cast<int32_t>(inside ? 0 : last ? std::min(place, s_.groups - 1 - first[words_.blocks - 1]) : place);
    }
    words_.first = first;
    (inside || divides ? words_.spread : words_.of_each_word) = index;
  }

  // Rows of the weight, with their scales in the slot.
  QuantizedRows rows(const QuantizedKernels& kernels, int64_t first, int64_t count, const Slot& slot) const {
    const int64_t bytes = s_.k * s_.bits / 8;
    kernels.convert(call_.in(2), first, count, slot.scales, slot.minima);
    return {data<uint8_t>(call_.in(1)) + first * bytes,
            slot.scales,
            s_.has_minima ? slot.minima : nullptr,
            count,
            bytes,
            s_.groups};
  }

  void multiply_rows(const QuantizedKernels& kernels, const float* x) {
    const int64_t stride = words_.blocks * block_floats(), each = rows_of_task();
    for (int64_t j = 0; j < s_.m; ++j) kernels.arrange(x + j * s_.k, s_.k, s_.bits, arranged_ + j * stride);
    run_tasks(each, [&](const Slot& mine, int64_t first, int64_t count) {
      const auto out = output(mine, first, count);
      const QuantizedRows weight = rows(kernels, first, count, mine);
      for (int64_t j = 0; j < s_.m; j += kFewVectors)
        kernels.multiply(weight, words_, s_.bits, arranged_ + j * stride, stride, std::min(kFewVectors, s_.m - j),
                         out.data + j * out.row, out.row);
    });
  }

  void multiply_tiles(const QuantizedKernels& kernels, const ProductKernels<float>& products, const float* x) {
    run_tasks(kTileColumns, [&](const Slot& mine, int64_t first, int64_t columns) {
      const QuantizedRows tile = rows(kernels, first, columns, mine);
      const Matrix<float> out = output(mine, first, columns);
      for (int64_t at = 0; at < s_.k; at += kDeep) {
        const int64_t deep = std::min(kDeep, s_.k - at), stride = deep * products.columns;
        kernels.unpack(tile, s_.bits, s_.group, at, deep, mine.tile);
        products.pack(columns, deep, {mine.tile, 1, deep}, mine.panels, stride);
        products.multiply_panels(s_.m, columns, deep, {x + at, s_.k, 1}, {mine.panels, stride}, out,
                                 Addend<float>(out, at > 0), nullptr);
      }
    });
  }

  // Columns of the output: in place, or in the slot until they are rounded.
  Matrix<float> output(const Slot& mine, int64_t first, int64_t columns) const {
    if constexpr (std::is_same_v<T, float>) return {data<float>(call_.out()) + first, s_.n, 1};
    else return {mine.out, columns, 1};
  }
  // Calls f(slot, first, count) for `each` columns of the output at a time, and rounds them.
  template <class F> void run_tasks(int64_t each, F&& f) {
    parallel_in_slots(static_cast<int>(slots_), slots_, ceil_div(s_.n, each), [&](int64_t number, int64_t task) {
      const Slot& mine = slots_of_[static_cast<size_t>(number)];
      const int64_t first = task * each, count = std::min(each, s_.n - first);
      f(mine, first, count);
      if constexpr (!std::is_same_v<T, float>) {
        T* const to = data<T>(call_.out()) + first;
        for (int64_t r = 0; r < s_.m; ++r)
          for (int64_t c = 0; c < count; ++c) to[r * s_.n + c] = static_cast<T>(mine.out[r * count + c]);
      }
    });
  }

  const Call& call_;
  const Sizes s_;
  const int64_t lanes_;
  Parts parts_;
  float *wide_ = nullptr, *arranged_ = nullptr;
  WordGroups words_{};
  int64_t slots_ = 0;
  std::vector<Slot> slots_of_;
};

}  // namespace

template <class T>
void run_quantized(const Call& call, const QuantizedKernels& kernels, const ProductKernels<float>& products) {
  Plan<T>(call, kernels.lanes, call.workspace()).run(kernels, products);
}
template <class T> uint64_t quantized_workspace(const Call& call, int64_t lanes) {
  return Plan<T>(call, lanes, nullptr).bytes();
}
template void run_quantized<float>(const Call&, const QuantizedKernels&, const ProductKernels<float>&);
template void run_quantized<BFloat16>(const Call&, const QuantizedKernels&, const ProductKernels<float>&);
template uint64_t quantized_workspace<float>(const Call&, int64_t);
template uint64_t quantized_workspace<BFloat16>(const Call&, int64_t);

}  // namespace plugrad::cpu
