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

// Images with strides: with channels last, vectors hold the channels of a position.
template <class T> class StridedMaxPool : Runs<T> {
  using typename Runs<T>::D;
  using DI = hn::RebindToSigned<D>;
  using I = hn::TFromD<DI>;

 public:
  explicit StridedMaxPool(const Call& call)
      : call_(call), pool_(call), channels_(call.in(0).shape[1]), x_(call.in(0)), values_(call.out(0)),
        indices_(call.out(1)) {}

  void run() const {
    const int64_t lines = pool_.axes[0].count * pool_.axes[1].count;
    parallel(threads_of(call_), call_.in(0).shape[0] * lines, [&](int64_t task) {
      const int64_t d = task % lines / pool_.axes[1].count, h = task % pool_.axes[1].count;
      for (int64_t w = 0; w < pool_.axes[2].count; ++w) pool_window(task / lines, {d, h, w});
    });
  }

 private:
  using At = std::array<int64_t, 3>;
  struct Strides {
    int64_t image, channel;
    At axis{};
    explicit Strides(const plugrad_view& v) : image(v.strides[0]), channel(v.shape[1] == 1 ? 1 : v.strides[1]) {
      for (int i = 2; i < v.rank; ++i) axis[static_cast<size_t>(3 - (v.rank - i))] = v.strides[i];
    }
    int64_t at(int64_t n, const At& p) const { return n * image + p[0] * axis[0] + p[1] * axis[1] + p[2] * axis[2]; }
  };

  void pool_window(int64_t n, const At& at) const {
    const std::array<Span, 3> spans{pool_.axes[0].span(at[0]), pool_.axes[1].span(at[1]), pool_.axes[2].span(at[2])};
    const T* const x = data<T>(call_.in(0)) + n * x_.image;
    T* const values = data<T>(call_.out(0)) + values_.at(n, at);
    int64_t* const indices = data<int64_t>(call_.out(1)) + indices_.at(n, at);
    const bool whole = x_.channel == 1 && values_.channel == 1;
    const D d;
    const hn::CappedTag<T, 1> one;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t c = 0;
    for (; whole && c + lanes <= channels_; c += lanes) pool_channels(d, x + c, spans, values + c, indices, c);
    for (; c < channels_; ++c) pool_channels(one, x + c * x_.channel, spans, values + c * values_.channel, indices, c);
  }

  template <class Tag>
  void pool_channels(Tag d, const T* x, const std::array<Span, 3>& spans, T* values, int64_t* indices, int64_t c) const {
    const hn::RebindToSigned<Tag> di;
    auto best = hn::Set(d, -std::numeric_limits<T>::infinity());
    auto at = hn::Set(di, static_cast<I>(position({spans[0].first, spans[1].first, spans[2].first})));
    for (int64_t i = 0; i < spans[0].count; ++i)
      for (int64_t j = 0; j < spans[1].count; ++j)
        for (int64_t k = 0; k < spans[2].count; ++k) {
          const At p{spans[0].first + i * pool_.axes[0].dilation, spans[1].first + j * pool_.axes[1].dilation,
                     spans[2].first + k * pool_.axes[2].dilation};
          const auto here = hn::LoadU(d, x + x_.at(0, p));
          // NaN is larger than every number; of equal elements the first stays.
          const auto stays = hn::Or(hn::Le(here, best), hn::Not(hn::Eq(best, best)));
          best = hn::IfThenElse(stays, best, here);
          at = hn::IfThenElse(hn::RebindMask(di, stays), at, hn::Set(di, static_cast<I>(position(p))));
        }
    hn::StoreU(best, d, values);
    HWY_ALIGN I positions[HWY_MAX_BYTES / sizeof(I)];
    hn::StoreU(at, di, positions);
    for (int64_t i = 0; i < static_cast<int64_t>(hn::Lanes(d)); ++i) indices[(c + i) * indices_.channel] = positions[i];
  }
  int64_t position(const At& p) const { return (p[0] * pool_.axes[1].extent + p[1]) * pool_.axes[2].extent + p[2]; }

  const Call& call_;
  Pooled pool_;
  int64_t channels_;
  Strides x_, values_, indices_;
};

bool is_dense_pool(const Call& call) { return is_dense(call.in(0)) && is_dense(call.out(0)) && is_dense(call.out(1)); }
template <class T> void max_pool(const Call& call) {
  if (Pooled(call).extent() > INT32_MAX) throw BackendError(PLUGRAD_UNSUPPORTED, "[max_pool] more than 2^31 - 1 positions");
  if (is_dense_pool(call)) return MaxPool<T>::run(call);
  StridedMaxPool<T>(call).run();
}
template <class T> uint64_t max_pool_workspace(const Call& call) {
  return is_dense_pool(call) ? MaxPool<T>::workspace(call) : 0;
}

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
  return join(std::array{with_workspace<max_pool_workspace<T>>(
                  kernel<max_pool<T>>(PLUGRAD_OP_MAX_POOL, element_dtype<T>, kDense | PLUGRAD_STRIDED))...},
              std::array{kernel<max_pool_backward<T>>(PLUGRAD_OP_MAX_POOL_BACKWARD, element_dtype<T>, kDense)...});
}
constexpr auto kPoolingRows = rows(kComputable);

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_pooling<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kPoolingRows); }
}  // namespace plugrad::cpu
