// Running sums along an axis. Lines are summed a vector at a time, or many of them side by side if they lie across memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/scans.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/fold-inl.hpp>
#include <backends/cpu/lines.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>

#include <algorithm>
#include <array>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kScanBlock = 128;   // elements added in T before their sum is added to the carried sum
constexpr int64_t kScanPanel = 1024;  // the most columns summed side by side
constexpr int64_t kFewColumns = 8;    // fewer are packed to lines

template <class T, bool reverse> struct Scan {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using Lane = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  static constexpr size_t kLanes = hn::MaxLanes(D());

  // For each lane, the lane `distance` before it (after it with reverse), or the lane at the end.
  static constexpr std::array<Lane, kLanes> lanes_from(size_t distance, size_t lanes) {
    std::array<Lane, kLanes> from{};
    for (size_t i = 0; i < lanes; ++i)
      from[i] = static_cast<Lane>(reverse ? std::min(i + distance, lanes - 1) : i - std::min(i, distance));
    return from;
  }

  static constexpr std::array<Lane, kLanes> last_lane() {
    std::array<Lane, kLanes> from{};
    from.fill(reverse ? 0 : kLanes - 1);
    return from;
  }

  // Each lane's sum with all lanes before it, by doubling distances.
  template <size_t distance = 1> static HWY_INLINE V within(V v) {
    const D d;
    if constexpr (distance >= kLanes) return v;
    else {
      alignas(HWY_MAX_BYTES) static constexpr auto kFrom = lanes_from(distance, kLanes);
      const V other = hn::TableLookupLanes(v, hn::SetTableIndices(d, kFrom.data()));
      const auto first = reverse ? hn::Not(hn::FirstN(d, kLanes - distance)) : hn::FirstN(d, distance);
      return within<2 * distance>(hn::Add(v, hn::IfThenZeroElse(first, other)));
    }
  }
  // The sum of all lanes, in each.
  static HWY_INLINE V whole(V sums) {
    alignas(HWY_MAX_BYTES) static constexpr auto kFrom = last_lane();
    return hn::TableLookupLanes(sums, hn::SetTableIndices(D(), kFrom.data()));
  }

  // The sums of a block of at most kScanBlock elements, each added to `before`. Returns their sum.
  static T block(T* out, const T* x, int64_t n, T before) {
    const D d;
    const V base = hn::Set(d, before);
    V sum = hn::Zero(d);
    const auto step = [&](V v) HWY_ATTR {
      const V sums = within(v), result = hn::Add(hn::Add(sums, sum), base);
      sum = hn::Add(sum, whole(sums));
      return result;
    };
    constexpr int64_t lanes = kLanes;
    const int64_t rest = n % lanes, full = n - rest;
    const auto partly = [&]() HWY_ATTR {
      const size_t some = static_cast<size_t>(rest);
      if (rest) store_part(d, step(load_part(d, x + full, some, T(0))), out + full, some);
    };
    if constexpr (reverse) partly();
    for (int64_t i = 0; i < full; i += lanes) {
      const int64_t at = reverse ? full - lanes - i : i;
      hn::StoreU(step(hn::LoadU(d, x + at)), d, out + at);
    }
    if constexpr (!reverse) partly();
    return hn::GetLane(sum);
  }

  static void line(T* out, const T* x, int64_t n) {
    typename Sum<T>::Partial sum{};
    for (int64_t done = 0; done < n; done += kScanBlock) {
      const int64_t some = std::min(kScanBlock, n - done), at = reverse ? n - done - some : done;
      absorb(sum, block(out + at, x + at, some, static_cast<T>(total(sum))));
    }
  }

  // Columns of n elements each, side by side; steps along them in bytes.
  static void panel(char* out, const char* x, int64_t n, int64_t columns, int64_t out_step, int64_t x_step) {
    typename Sum<T>::Partial sums[kScanPanel] = {};
    alignas(HWY_MAX_BYTES) T base[kScanPanel], block[kScanPanel];
    if (reverse) {
      out += (n - 1) * out_step;
      x += (n - 1) * x_step;
    }
    for (int64_t i = 0; i < n; ++i) {
      if (i % kScanBlock == 0) begin_block(sums, base, block, i == 0, columns);
      add_row(reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x), base, block, columns);
      out += reverse ? -out_step : out_step;
      x += reverse ? -x_step : x_step;
    }
  }
  static void begin_block(typename Sum<T>::Partial* sums, T* base, T* block, bool first, int64_t columns) {
    for (int64_t c = 0; c < columns; ++c) {
      if (!first) absorb(sums[c], block[c]);
      base[c] = static_cast<T>(total(sums[c]));
      block[c] = 0;
    }
  }
  static void add_row(T* HWY_RESTRICT out, const T* HWY_RESTRICT x, const T* HWY_RESTRICT base, T* HWY_RESTRICT block,
                      int64_t columns) {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) {
      block[c] = Sum<T>::combine_lanes(block[c], x[c]);
      out[c] = Sum<T>::combine_lanes(base[c], block[c]);
    }
  }
};

// The dimensions without the axis, merged where both operands allow it; strides in bytes.
struct Columns {
  int rank = 0;
  int64_t shape[PLUGRAD_MAX_RANK + 1], out[PLUGRAD_MAX_RANK + 1], x[PLUGRAD_MAX_RANK + 1];

  explicit Columns(const Call& call) {
    const plugrad_view& to = call.out();
    for (int d = 0; d < to.rank; ++d) {
      if (d == call.attributes<plugrad_scan>().axis || to.shape[d] == 1) continue;
      append(to.shape[d], step(to, d), step(call.in(0), d));
    }
    if (!rank) append(1, 0, 0);
  }
  void append(int64_t extent, int64_t out_step, int64_t x_step) {
    const int last = rank - 1;
    if (rank && out[last] == extent * out_step && x[last] == extent * x_step) {
      extent *= shape[last];
      --rank;
    }
    shape[rank] = extent;
    out[rank] = out_step;
    x[rank++] = x_step;
  }
  int64_t count() const { return shape[rank - 1]; }
  bool is_dense(int64_t size) const { return out[rank - 1] == size && x[rank - 1] == size; }
};

template <class T> Lines scan_plan(const Call& call) {
  const plugrad_view* const views[] = {&call.out(), &call.in(0)};
  return Lines(views, 1, call.attributes<plugrad_scan>().axis);
}

// Whether the axis lies across memory, and columns side by side.
template <class T> bool is_across(const Call& call) {
  const int axis = call.attributes<plugrad_scan>().axis;
  const Columns columns(call);
  return call.out().rank && step(call.out(), axis) != sizeof(T) && !is_immediate(call.in(0)) &&
         columns.is_dense(sizeof(T)) && columns.count() >= kFewColumns;
}

template <class T, bool reverse> void scan_across(const Call& call) {
  const int axis = call.attributes<plugrad_scan>().axis;
  const Columns columns(call);
  const int64_t n = call.out().shape[axis], out_step = step(call.out(), axis), x_step = step(call.in(0), axis);
  const int64_t width = std::clamp<int64_t>((columns.count() / 8 + 63) / 64 * 64, 64, kScanPanel);
  const int64_t panels = (columns.count() + width - 1) / width;
  int64_t tasks = panels;
  for (int d = 0; d < columns.rank - 1; ++d) tasks *= columns.shape[d];
  const int64_t each = std::max<int64_t>(1, kGrain / (n * std::min(width, columns.count())));
  parallel(threads_of(call), (tasks + each - 1) / each, [&](int64_t task) {
    for (int64_t t = task * each; t < std::min(tasks, (task + 1) * each); ++t) {
      const int64_t first = t % panels * width, size = sizeof(T);
      char* out = data<char>(call.out()) + first * size;
      const char* x = data<char>(call.in(0)) + first * size;
      for (int64_t d = columns.rank - 2, i = t / panels; d >= 0; i /= columns.shape[d--]) {
        out += i % columns.shape[d] * columns.out[d];
        x += i % columns.shape[d] * columns.x[d];
      }
      Scan<T, reverse>::panel(out, x, n, std::min(width, columns.count() - first), out_step, x_step);
    }
  });
}

template <class T, bool reverse> void scan_along(const Call& call) {
  const int64_t n = call.out().rank ? call.out().shape[call.attributes<plugrad_scan>().axis] : 1;
  const auto each = [](const void* context, char* const* p, int64_t) {
    const int64_t length = *static_cast<const int64_t*>(context);
    Scan<T, reverse>::line(reinterpret_cast<T*>(p[0]), reinterpret_cast<const T*>(p[1]), length);
  };
  scan_plan<T>(call).run(threads_of(call), call.workspace(), each, &n);
}

template <class T> void cumsum(const Call& call) {
  const bool reverse = call.attributes<plugrad_scan>().reverse != 0;
  if (is_across<T>(call)) reverse ? scan_across<T, true>(call) : scan_across<T, false>(call);
  else reverse ? scan_along<T, true>(call) : scan_along<T, false>(call);
}

template <class T> uint64_t scan_workspace(const Call& call) {
  return is_across<T>(call) ? 0 : scan_plan<T>(call).workspace();
}

template <class T> void append_scan(RowList& rows) {
  rows.push_back(with_workspace<scan_workspace<T>>(kernel<cumsum<T>>(PLUGRAD_OP_CUMSUM, kDtype<T>)));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_scans<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append_scan<float>(rows);
  HWY_NAMESPACE::append_scan<double>(rows);
  HWY_NAMESPACE::append_scan<int64_t>(rows);
}
}  // namespace plugrad::cpu
