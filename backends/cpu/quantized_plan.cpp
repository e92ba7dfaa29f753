#include <backends/cpu/quantized.hpp>

#include <backends/cpu/contraction.hpp>
#include <backends/cpu/pieces.hpp>

#include <vector>

namespace plugrad::cpu {
namespace {

constexpr int64_t kTaskElements = 1 << 16;          // of the weight, for few rows of x
constexpr int64_t kTileColumns = 128, kDeep = 512;  // of a tile of the weight in f32
constexpr int64_t kFewRows = 16;                    // of x, which gain more by reading codes several times than by tiles

struct Sizes {
  explicit Sizes(const Call& call)
      : m(call.out().shape[0]), n(call.out().shape[1]), k(call.in(0).shape[1]), bits(call.in(1).shape[1] * 8 / k),
        groups(call.in(2).shape[1]), group(k / groups) {}
  bool few() const { return m <= kFewRows; }
  int64_t m, n, k, bits, groups, group;
};

// The memory of one thread.
struct Slot {
  float *scales = nullptr, *minima = nullptr, *tile = nullptr, *panels = nullptr, *out = nullptr;
};

template <class T> class Plan {
 public:
  Plan(const Call& call, int64_t lanes, char* memory)
      : call_(call), s_(call), lanes_(lanes), pieces_(reinterpret_cast<float*>(memory)) {
    if (!std::is_same_v<T, float>) wide_ = pieces_.take(s_.m * s_.k);
    if (s_.few()) plan_words();
    const int64_t tasks = s_.few() ? ceil_div(s_.n, rows_of_task()) : ceil_div(s_.n, kTileColumns);
    for (int64_t i = 0; i < std::min<int64_t>(threads_of(call), tasks); ++i) slots_.push_back(take_slot());
  }
  uint64_t bytes() const { return static_cast<uint64_t>(pieces_.taken()) * sizeof(float); }

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
    slot.scales = pieces_.take(rows * s_.groups + lanes_);
    slot.minima = pieces_.take(rows * s_.groups + lanes_);
    if (!std::is_same_v<T, float>) slot.out = pieces_.take(s_.m * rows);
    if (s_.few()) return slot;
    slot.tile = pieces_.take(kTileColumns * std::min(s_.k, kDeep));
    slot.panels = pieces_.take(kTileColumns * std::min(s_.k, kDeep));
    return slot;
  }

  void plan_words() {
    const int64_t per = 32 / s_.bits, group = s_.group / per;  // in words
    words_.words = s_.k / per;
    words_.blocks = ceil_div(words_.words, lanes_);
    arranged_ = pieces_.take(s_.m * words_.blocks * block_floats());
    // Whether a block lies within one group, and whether each of its groups lies within the block.
    const bool inside = s_.groups == 1 || group % lanes_ == 0, divides = lanes_ % group == 0;
    const int64_t each = inside || divides ? 2 * lanes_ : words_.blocks * lanes_;
    auto* const first = reinterpret_cast<int32_t*>(pieces_.take(words_.blocks));
    auto* const index = reinterpret_cast<int32_t*>(pieces_.take(each));
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
    kernels.convert(call_.in(2), s_.bits, first, count, slot.scales, slot.minima);
    return {data<uint8_t>(call_.in(1)) + first * bytes, slot.scales, slot.minima, count, bytes, s_.groups};
  }

  void multiply_rows(const QuantizedKernels& kernels, const float* x) {
    const int64_t stride = words_.blocks * block_floats(), each = rows_of_task();
    for (int64_t j = 0; j < s_.m; ++j) kernels.arrange(x + j * s_.k, s_.k, s_.bits, arranged_ + j * stride);
    run_tasks(each, [&](const Slot& mine, int64_t first, int64_t count) {
      const auto out = output(mine, first, count);
      const QuantizedRows weight = rows(kernels, first, count, mine);
      for (int64_t j = 0; j < s_.m; j += kMostVectors)
        kernels.multiply(weight, words_, s_.bits, arranged_ + j * stride, stride, std::min(kMostVectors, s_.m - j),
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
    const auto slots = static_cast<int64_t>(slots_.size());
    parallel_in_slots(static_cast<int>(slots), slots, ceil_div(s_.n, each), [&](int64_t number, int64_t task) {
      const Slot& mine = slots_[static_cast<size_t>(number)];
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
  Pieces<float> pieces_;
  float *wide_ = nullptr, *arranged_ = nullptr;
  WordGroups words_{};
  std::vector<Slot> slots_;
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
