// The largest elements of windows, and their positions: a line of windows at a time. Each line of x is split by remainders
// of the stride, with -inf on both sides, so the same element of all windows is contiguous.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pooling.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/pooling.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/runs-inl.hpp>
#include <plugrad/sdk/rows.hpp>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

int64_t tasks_of(const Pooled& pool, int64_t& each) {
  each = std::max<int64_t>(1, kGrain / pool.extent());
  return (pool.planes + each - 1) / each;
}

template <class T> class MaxPool : Runs<T> {
  using typename Runs<T>::D;
  using typename Runs<T>::V;
  using Runs<T>::lanes, Runs<T>::copy_line;
  using DI = hn::RebindToSigned<D>;
  using VI = hn::Vec<DI>;
  using I = hn::TFromD<DI>;

 public:
  static uint64_t workspace(const Call& call) {
    const MaxPool pool(call);
    return static_cast<uint64_t>(pool.slots(threads_of(call)) * pool.slot_ + pool.wide_) * sizeof(T);
  }
  static void run(const Call& call) {
    const MaxPool pool(call);
    if (pool.pool_.extent() > INT32_MAX) throw BackendError(PLUGRAD_UNSUPPORTED, "[max_pool] more than 2^31 - 1 positions");
    T* const memory = reinterpret_cast<T*>(call.workspace());
    I* const firsts = reinterpret_cast<I*>(memory);
    for (int64_t i = 0; i < pool.wide_; ++i)
      firsts[i] = static_cast<I>(pool.pool_.axes[2].span(std::min(i, pool.pool_.axes[2].count - 1)).first);
    parallel_in_slots(threads_of(call), pool.slots(threads_of(call)), pool.tasks_, [&](int64_t slot, int64_t task) {
      T* const own = memory + pool.wide_ + slot * pool.slot_;
      std::fill_n(own, pool.parts_, kLeast);
      for (int64_t i = task * pool.each_; i < std::min(pool.pool_.planes, (task + 1) * pool.each_); ++i)
        pool.pool_plane(data<T>(call.in(0)) + i * pool.pool_.extent(), firsts, own,
                        data<T>(call.out(0)) + i * pool.pool_.windows(),
                        data<int64_t>(call.out(1)) + i * pool.pool_.windows());
    });
  }

 private:
  explicit MaxPool(const Call& call) : pool_(call), tasks_(tasks_of(pool_, each_)) {
    const PoolAxis& w = pool_.axes[2];
    constexpr int64_t kMost = HWY_MAX_BYTES / static_cast<int64_t>(sizeof(T));
    wide_ = (w.count + kMost - 1) / kMost * kMost;
    reach_ = wide_ + (w.size - 1) * w.dilation / w.stride + 1;
    parts_ = reach_ * w.stride;
    slot_ = parts_ + 2 * wide_;
    for (int64_t k = 0; k < w.size; ++k) taps_.push_back(k * w.dilation % w.stride * reach_ + k * w.dilation / w.stride);
    for (int64_t b = 0; b < pool_.axes[1].count; ++b) lines_.push_back(pool_.axes[1].span(b));
    plan_split();
  }
  int64_t slots(int threads) const { return std::min<int64_t>(threads, tasks_); }

  // A line of x by its elements' remainders: the elements of remainder r begin at r * reach_. The memory around them is
  // never written.
  struct Part {
    int64_t to, from, count;
  };
  void plan_split() {
    const PoolAxis& w = pool_.axes[2];
    for (int64_t r = 0; r < w.stride; ++r) {
      const int64_t first = r - w.padding, skipped = first < 0 ? (-first + w.stride - 1) / w.stride : 0;
      const int64_t from = first + skipped * w.stride;
      if (from >= w.extent || skipped >= reach_) continue;
      split_.push_back({r * reach_ + skipped, from, std::min((w.extent - 1 - from) / w.stride + 1, reach_ - skipped)});
    }
  }
  void split(const T* line, T* to) const {
    for (const Part& part : split_) copy_line(to + part.to, line + part.from, part.count, pool_.axes[2].stride);
  }

  // The windows of the best elements so far, from this line of x.
  void take(const T* split_line, int64_t line, T* values, I* positions) const {
    const D d;
    const DI di;
    const PoolAxis& w = pool_.axes[2];
    const VI steps = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<I>(w.stride)));
    for (int64_t i = 0; i < wide_; i += lanes()) {
      V best = hn::LoadU(d, values + i);
      VI at = hn::LoadU(di, positions + i);
      for (int64_t k = 0; k < w.size; ++k) {
        const V x = hn::LoadU(d, split_line + taps_[static_cast<size_t>(k)] + i);
        // NaN is larger than every number; of equal elements the first stays.
        const auto stays = hn::Or(hn::Le(x, best), hn::Not(hn::Eq(best, best)));
        best = hn::IfThenElse(stays, best, x);
        const VI here = hn::Add(steps, hn::Set(di, static_cast<I>(line + i * w.stride - w.padding + k * w.dilation)));
        at = hn::IfThenElse(hn::RebindMask(di, stays), at, here);
      }
      hn::StoreU(best, d, values + i);
      hn::StoreU(at, di, positions + i);
    }
  }

  void pool_plane(const T* plane, const I* firsts, T* memory, T* values, int64_t* indices) const {
    const auto& [deep, high, wide] = pool_.axes;
    T* const best = memory + parts_;
    I* const positions = reinterpret_cast<I*>(best + wide_);
    for (int64_t a = 0; a < deep.count; ++a) {
      const Span d = deep.span(a);
      for (const Span h : lines_) {
        const int64_t start = (d.first * high.extent + h.first) * wide.extent;
        std::fill_n(best, wide_, kLeast);
        for (int64_t i = 0; i < wide_; ++i) positions[i] = static_cast<I>(start) + firsts[i];
        for (int64_t i = 0; i < d.count; ++i)
          for (int64_t j = 0; j < h.count; ++j) {
            const int64_t line = start + (i * deep.dilation * high.extent + j * high.dilation) * wide.extent;
            split(plane + line, memory);
            take(memory, line, best, positions);
          }
        std::copy_n(best, wide.count, values);
        for (int64_t i = 0; i < wide.count; ++i) indices[i] = positions[i];
        values += wide.count;
        indices += wide.count;
      }
    }
  }

  static constexpr T kLeast = -std::numeric_limits<T>::infinity();
  Pooled pool_;
  int64_t each_, tasks_;
  int64_t wide_, reach_;       // the windows of a line in whole vectors, and the elements of a part of a split line
  int64_t parts_, slot_;       // elements of all parts, and of a task's memory
  std::vector<int64_t> taps_;  // where a window's elements are in a split line
  std::vector<Span> lines_;    // of the windows
  std::vector<Part> split_;
};

template <class T> void max_pool_backward(const Call& call) {
  const int64_t planes = call.out().shape[0] * call.out().shape[1], extent = call.out().count / planes;
  const int64_t each = call.in(0).count / planes, some = std::max<int64_t>(1, kGrain / extent);
  std::atomic<bool> outside{false};
  parallel(threads_of(call), (planes + some - 1) / some, [&](int64_t task) {
    for (int64_t i = task * some; i < std::min(planes, (task + 1) * some); ++i) {
      T* const to = data<T>(call.out()) + i * extent;
      const T* const grad = data<T>(call.in(0)) + i * each;
      const int64_t* const indices = data<int64_t>(call.in(1)) + i * each;
      std::fill_n(to, extent, T(0));
      for (int64_t j = 0; j < each; ++j) {
        if (static_cast<uint64_t>(indices[j]) >= static_cast<uint64_t>(extent)) return outside.store(true);
        to[indices[j]] += grad[j];
      }
    }
  });
  if (outside)
    throw BackendError(PLUGRAD_INDEX_ERROR,
                       "[max_pool_backward] an index is out of range for " + std::to_string(extent) + " elements");
}

template <class... T> constexpr auto rows(Types<T...>) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  return join(std::array{with_workspace<MaxPool<T>::workspace>(
                  kernel<MaxPool<T>::run>(PLUGRAD_OP_MAX_POOL, element_dtype<T>, kDense))...},
              std::array{kernel<max_pool_backward<T>>(PLUGRAD_OP_MAX_POOL_BACKWARD, element_dtype<T>, kDense)...});
}
constexpr auto kPoolingRows = rows(kComputable);

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_pooling<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kPoolingRows); }
}  // namespace plugrad::cpu
