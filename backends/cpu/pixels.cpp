#include <backends/cpu/pixels.hpp>

#include <backends/cpu/pool.hpp>
#include <backends/cpu/windows.hpp>

#include <algorithm>
#include <vector>

namespace plugrad::cpu {
namespace {

constexpr int64_t kMostPositions = 96, kTableEntries = 4096;  // of a task, and of its table of pixels
constexpr int64_t kProductBytes = 4096;  // of a column of weights used at a time: the L2 cache holds them
constexpr int64_t kDepthwiseColumns = 256;
constexpr int64_t kImageBytes = 1 << 20;  // of images copied at a time
constexpr int64_t kTasks = 8;             // enough for several threads
constexpr int64_t kTaskWork = 1 << 19;    // multiplications worth a task
constexpr int64_t kPacked = 8192;         // elements transposed at a time
constexpr int64_t kFewChannels = 16;      // with fewer channels, the taps of a line are worth a single run
constexpr int64_t kOutside = INT64_MIN;

// Tensors (n, c, d, h, w), by the steps between their elements.
struct Steps {
  int64_t image, channel;
  Extents axis{};

  explicit Steps(const plugrad_view& v) : image(v.strides[0]), channel(v.shape[1] == 1 ? 1 : v.strides[1]) {
    if (v.shape[0] == 1) image = 0;
    for (int i = 2; i < v.rank; ++i) axis[3 - (v.rank - i)] = v.shape[i] == 1 ? 0 : v.strides[i];
  }
};

template <class T> class ByPixels {
 public:
  ByPixels(const Call& call, int64_t columns)
      : call_(call), window_(call.in(1), call.attributes<plugrad_convolution>()), x_(call.in(0)), out_(call.out()),
        extent_(spatial(call.in(0))), count_(spatial(call.out())), images_(call.out().shape[0]),
        all_channels_(call.in(0).shape[1]), channels_(call.in(1).shape[1]), rows_(call.in(1).shape[0] / window_.groups),
        depthwise_(channels_ == 1 && rows_ == 1) {
    groups_ = depthwise_ ? 1 : window_.groups;
    if (depthwise_) rows_ = all_channels_;
    panel_ = depthwise_ ? kDepthwiseColumns : columns;
    panels_ = ceil_div(rows_, panel_);
    taps_ = product(window_.size);
    run_ = depthwise_ ? all_channels_ : channels_;
    blocks_ = sum_blocks<T>(taps_, channels_);
    copies_ = x_.channel != 1 || (!depthwise_ && window_.size[2] > 1 && channels_ < kFewChannels);
    if (copies_) plan_copy();
    list_offsets();
    plan_tasks();
  }

  uint64_t workspace(int threads) const {
    return static_cast<uint64_t>(weight_elements() + run_ + copy_elements() + slots(threads) * slot_elements()) * kSize;
  }

  void run(const PixelKernels<T>& kernels, int threads) {
    T* const weights = reinterpret_cast<T*>(call_.workspace());
    pack_weights(kernels, threads, weights);
    T* const zeros = weights + weight_elements();
    std::fill_n(zeros, run_, T(0));
    T* const copy = zeros + run_;
    T* const slots_begin = copy + copy_elements();
    for (int64_t image = 0; image < images_; image += some_images_) {
      const int64_t some = std::min(some_images_, images_ - image), tasks = ceil_div(some * product(count_), positions_);
      if (copies_) copy_images(kernels, threads, image, some, copy);
      const T* const x = copies_ ? copy : data<T>(call_.in(0)) + image * x_.image;
      parallel_in_slots(threads, slots(threads), tasks * groups_ * splits_, [&](int64_t slot, int64_t task) {
        run_task(kernels, task, some, image, {x, zeros, weights}, slots_begin + slot * slot_elements());
      });
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T), kLanes = 64 / kSize;  // a multiple of the lanes of any kernel

  // --- The plan.

  // The images are copied with the zeros around them. The taps of a line may then be a single run of channels.
  void plan_copy() {
    for (int i = 0; i < 3; ++i)
      padded_[i] = (count_[i] - 1) * window_.stride[i] + (window_.size[i] - 1) * window_.dilation[i] + 1;
    const int64_t pixel = all_channels_;
    x_.channel = 1;
    x_.axis = {padded_[1] * padded_[2] * pixel, padded_[2] * pixel, pixel};
    x_.image = padded_[0] * x_.axis[0];
    if (depthwise_ || groups_ > 1 || window_.dilation[2] > 1) return;
    const int64_t along = window_.size[2];
    if (along == 1) return;
    if (taps_ > along && std::ranges::any_of(blocks_, [&](const SumBlock& each) { return each.taps % along; })) return;
    run_ = channels_ * along;
    for (SumBlock& each : blocks_) {
      const bool whole = each.taps % along == 0;  // otherwise there is a single line
      each = {each.tap / along, whole ? each.taps / along : 1, each.tap % along * channels_ + each.channel,
              whole ? run_ : each.taps * each.channels};
    }
    taps_ /= along;
    line_taps_ = 1;
  }

  // The distance of each tap's element from the image's first element, for each position along an axis.
  void list_offsets() {
    for (int i = 0; i < 3; ++i) {
      const int64_t taps = taps_along(i);
      for (int64_t at = 0; at < count_[i]; ++at)
        for (int64_t k = 0; k < taps; ++k) {
          const int64_t element = at * window_.stride[i] + k * window_.dilation[i] - (copies_ ? 0 : window_.padding[i]);
          const bool inside = copies_ || (element >= 0 && element < extent_[i]);
          offsets_[i].push_back(inside ? element * x_.axis[i] : kOutside);
        }
    }
  }
  int64_t taps_along(int i) const { return i == 2 && line_taps_ ? line_taps_ : window_.size[i]; }

  void plan_tasks() {
    positions_ = std::clamp<int64_t>(kTableEntries / taps_, 8, kMostPositions);
    some_images_ = images_;
    if (copies_) some_images_ = std::clamp<int64_t>(kImageBytes / kSize / std::max<int64_t>(x_.image, 1), 1, images_);
    positions_ = std::min(positions_, some_images_ * product(count_));
    const int64_t tasks = ceil_div(some_images_ * product(count_), positions_) * groups_;
    const int64_t work = positions_ * rows_ * taps_ * (depthwise_ ? 1 : run_);
    splits_ = tasks >= kTasks ? 1 : std::clamp<int64_t>(std::min(ceil_div(kTasks, tasks), work / kTaskWork), 1, panels_);
    tasks_ = tasks * splits_;
    stores_directly_ = out_.channel == 1 && has_even_positions();
  }
  // Whether all positions of the results are at equal distances.
  bool has_even_positions() const {
    int64_t step = 0, before = 1;
    for (int i = 3; i-- > -1;) {
      const int64_t extent = i < 0 ? images_ : count_[i], along = i < 0 ? out_.image : out_.axis[i];
      if (extent == 1) continue;
      if (!step) step = along;
      else if (along != step * before) return false;
      before *= extent;
    }
    return true;
  }
  int64_t position_step() const {
    for (int i = 3; i-- > 0;)
      if (count_[i] > 1) return out_.axis[i];
    return out_.image;
  }

  int64_t columns_of(int64_t panel) const { return ceil_div(rows_of(panel), kLanes) * kLanes; }
  int64_t rows_of(int64_t panel) const { return std::min(panel_, rows_ - panel * panel_); }
  int64_t products() const { return taps_ * (depthwise_ ? 1 : run_); }
  int64_t group_elements() const { return (products() + 1) * ceil_div(rows_, kLanes) * kLanes; }  // with the bias
  int64_t weight_elements() const { return groups_ * group_elements(); }
  int64_t copy_elements() const { return copies_ ? ceil_div(some_images_ * x_.image, kLanes) * kLanes : 0; }
  int64_t slots(int threads) const { return std::min<int64_t>(threads, tasks_); }
  int64_t slot_elements() const {
    const int64_t table = ceil_div(positions_ * taps_ * static_cast<int64_t>(sizeof(T*)), kSize);
    return ceil_div(table + (stores_directly_ ? 0 : positions_ * panel_), kLanes) * kLanes;
  }

  // --- Weights, panel by panel: the bias, then tap by tap and channel by channel.

  const T* panel_weights(const T* weights, int64_t group, int64_t panel) const {
    return weights + group * group_elements() + panel * panel_ * (products() + 1);
  }
  bool has_bias() const { return call_.op().inputs == 3; }

  void pack_weights(const PixelKernels<T>& kernels, int threads, T* weights) const {
    parallel(threads, groups_ * panels_, [&](int64_t i) {
      const int64_t group = i / panels_, panel = i % panels_, row = group * rows_ + panel * panel_;
      const int64_t columns = columns_of(panel), rows = rows_of(panel);
      T* const to = const_cast<T*>(panel_weights(weights, group, panel));
      if (rows < columns) std::fill_n(to, (products() + 1) * columns, T(0));
      else if (!has_bias()) std::fill_n(to, columns, T(0));
      for (int64_t r = 0; has_bias() && r < rows; ++r) to[r] = data<T>(call_.in(2))[(row + r) * call_.in(2).strides[0]];
      pack_panel(kernels, row, rows, columns, to + columns);
    });
  }
  void pack_panel(const PixelKernels<T>& kernels, int64_t row, int64_t rows, int64_t columns, T* to) const {
    const plugrad_view& weight = call_.in(1);
    const Steps steps(weight);
    const int64_t row_step = weight.shape[0] == 1 ? 0 : weight.strides[0],
                  channel = weight.shape[1] == 1 ? 0 : weight.strides[1];
    const T* const from = data<T>(weight) + row * row_step;
    const int64_t taps = product(window_.size), some = kPacked / columns / taps;
    if (is_dense(weight) && taps > 1 && some > 0) return pack_dense(kernels, from, {rows, columns, taps, some}, to);
    for (int64_t d = 0; d < window_.size[0]; ++d)
      for (int64_t h = 0; h < window_.size[1]; ++h)
        for (int64_t w = 0; w < window_.size[2]; ++w, to += channels_ * columns)
          kernels.copy(channels_, rows,
                       {from + d * steps.axis[0] + h * steps.axis[1] + w * steps.axis[2], channel, row_step}, to, columns);
  }
  struct Panel {
    int64_t rows, columns, taps, channels;
  };
  // Transposes the products of some channels at a time: their order in memory is channel by channel and tap by tap.
  void pack_dense(const PixelKernels<T>& kernels, const T* from, const Panel& panel, T* to) const {
    alignas(64) T turned[kPacked];
    for (int64_t first = 0; first < channels_; first += panel.channels) {
      const int64_t some = std::min(panel.channels, channels_ - first);
      kernels.copy(some * panel.taps, panel.rows, {from + first * panel.taps, 1, channels_ * panel.taps}, turned,
                   panel.columns);
      for (int64_t c = 0; c < some; ++c)
        for (int64_t tap = 0; tap < panel.taps; ++tap)
          std::copy_n(turned + (c * panel.taps + tap) * panel.columns, panel.rows,
                      to + (tap * channels_ + first + c) * panel.columns);
    }
  }

  // --- Images as pixels.

  void copy_images(const PixelKernels<T>& kernels, int threads, int64_t image, int64_t images, T* to) const {
    const Steps from(call_.in(0));
    const bool whole = padded_ == extent_ && window_.padding == Extents{} && from.axis[2] == 1 &&
                       from.axis[1] == extent_[2] && (extent_[0] == 1 || from.axis[0] == extent_[1] * extent_[2]);
    const int64_t lines = whole ? 1 : padded_[0] * padded_[1], length = x_.image / lines;
    parallel(threads, images * lines, [&](int64_t task) {
      const int64_t d = task % lines / padded_[1] - window_.padding[0], h = task % lines % padded_[1] - window_.padding[1];
      const T* const source = data<T>(call_.in(0)) + (image + task / lines) * from.image;
      T* line = to + task * length;
      if (whole) return kernels.copy(product(extent_), all_channels_, {source, 1, from.channel}, line, all_channels_);
      if (d < 0 || d >= extent_[0] || h < 0 || h >= extent_[1]) return void(std::fill_n(line, length, T(0)));
      const int64_t zeros = window_.padding[2] * all_channels_;
      const int64_t pixels = std::min(extent_[2], padded_[2] - window_.padding[2]),
                    rest = length - zeros - pixels * all_channels_;
      std::fill_n(line, std::min(zeros, length), T(0));
      if (pixels <= 0) return;
      kernels.copy(pixels, all_channels_, {source + d * from.axis[0] + h * from.axis[1], from.axis[2], from.channel},
                   line + zeros, all_channels_);
      std::fill_n(line + length - rest, rest, T(0));
    });
  }

  // --- Tasks: some positions and some panels of a group.

  struct Memory {
    const T *x, *zeros, *weights;
  };

  void run_task(const PixelKernels<T>& kernels, int64_t task, int64_t images, int64_t image, const Memory& memory,
                T* slot) const {
    const int64_t split = task % splits_, group = task / splits_ % groups_, first = task / splits_ / groups_ * positions_;
    const int64_t some = std::min(positions_, images * product(count_) - first);
    const T** const table = reinterpret_cast<const T**>(slot);
    T* const scratch = slot + slot_elements() - (stores_directly_ ? 0 : positions_ * panel_);
    list_pixels(memory, group * channels_, first, some, table);
    for (int64_t panel = split * panels_ / splits_; panel < (split + 1) * panels_ / splits_; ++panel) {
      PixelSums<T> s{};
      s.pixels = table;
      s.positions = some;
      s.columns = columns_of(panel);
      s.bias = panel_weights(memory.weights, group, panel);
      s.weights = s.bias + s.columns;
      s.rows = rows_of(panel);
      T* const out = data<T>(call_.out()) + image * out_.image + (group * rows_ + panel * panel_) * out_.channel;
      s.out = stores_directly_ ? out + first * position_step() : scratch;
      s.out_step = stores_directly_ ? position_step() : s.columns;
      if (!stores_directly_) s.rows = s.columns;
      sum(kernels, panel, s);
      if (!stores_directly_) store(kernels, scratch, first, some, {rows_of(panel), s.columns}, out);
    }
  }

  // The pixels of positions of the images at memory.x.
  void list_pixels(const Memory& memory, int64_t channel, int64_t first, int64_t some, const T** table) const {
    const int64_t taps[3] = {taps_along(0), taps_along(1), taps_along(2)};
    for (int64_t p = 0; p < some; ++p) {
      const int64_t at = first + p, w = at % count_[2], h = at / count_[2] % count_[1],
                    d = at / count_[2] / count_[1] % count_[0];
      const T* const image = memory.x + at / product(count_) * x_.image + channel;
      const T** to = table + p;
      for (int64_t i = 0; i < taps[0]; ++i)
        for (int64_t j = 0; j < taps[1]; ++j) {
          const int64_t deep = offsets_[0][d * taps[0] + i], high = offsets_[1][h * taps[1] + j];
          const bool inside = deep != kOutside && high != kOutside;
          for (int64_t k = 0; k < taps[2]; ++k, to += some) {
            const int64_t wide = offsets_[2][w * taps[2] + k];
            *to = inside && wide != kOutside ? image + deep + high + wide : memory.zeros;
          }
        }
    }
  }

  // Sums the products block by block: the L2 cache holds the weights of a block while all positions use them.
  void sum(const PixelKernels<T>& kernels, int64_t panel, PixelSums<T>& s) const {
    s.tap_step = s.positions;
    const T *const weights = s.weights, *const *const pixels = s.pixels;
    for (const SumBlock& block : blocks_) {
      s.pixels = pixels + block.tap * s.tap_step;
      s.taps = block.taps;
      s.first = depthwise_ ? panel * panel_ : block.channel;
      s.channels = block.channels;
      s.weights = weights + (block.tap * (depthwise_ ? 1 : run_) + block.channel) * s.columns;
      (depthwise_ ? kernels.sum_depthwise : kernels.sum)(s);
      s.adds = true;
    }
  }

  struct Block {
    int64_t rows, columns;
  };
  // Stores results from rows of `columns` elements, one row for each position. out: the first row of the images' first
  // position.
  void store(const PixelKernels<T>& kernels, const T* from, int64_t first, int64_t some, Block block, T* out) const {
    const bool dense =
        out_.axis[2] == 1 && out_.axis[1] == count_[2] && (count_[0] == 1 || out_.axis[0] == count_[1] * count_[2]);
    const int64_t length = dense ? product(count_) : count_[2];
    for (int64_t at = first; at < first + some;) {
      const int64_t end = std::min(first + some, (at / length + 1) * length), run = end - at;
      const int64_t w = at % count_[2], h = at / count_[2] % count_[1], d = at / count_[2] / count_[1] % count_[0];
      T* const to = out + at / product(count_) * out_.image + d * out_.axis[0] + h * out_.axis[1] + w * out_.axis[2];
      if (out_.axis[2] == 1) kernels.copy(block.rows, run, {from, 1, block.columns}, to, out_.channel);
      else
        for (int64_t p = 0; p < run; ++p)
          for (int64_t r = 0; r < block.rows; ++r) to[p * out_.axis[2] + r * out_.channel] = from[p * block.columns + r];
      from += run * block.columns;
      at = end;
    }
  }

  const Call& call_;
  WindowShape window_;
  Steps x_, out_;  // x_: of the copy, if there is one
  Extents extent_, count_, padded_{};
  int64_t images_, all_channels_, channels_, rows_, groups_;  // channels and rows of a group
  bool depthwise_, copies_, stores_directly_;
  int64_t panel_, panels_;              // columns of a panel, and panels of a group
  int64_t taps_, run_, line_taps_ = 0;  // pixels of a result, and the elements read from each
  int64_t positions_, some_images_, splits_, tasks_;
  std::vector<SumBlock> blocks_;
  std::vector<int64_t> offsets_[3];
};

}  // namespace

// Few products do not outweigh the transposition of the results. With many images, planes leave few lanes unused. Measured
// on Zen 4.
template <class T> bool is_better_by_pixels(const Call& call) {
  const plugrad_view &x = call.in(0), &weight = call.in(1), &out = call.out();
  for (int i = 0; i < call.op().outputs + call.op().inputs; ++i)
    if (!is_dense(*call.op().views[i])) return true;
  const WindowShape window(weight, call.attributes<plugrad_convolution>());
  const int64_t rows = weight.shape[0] / window.groups, taps = product(window.size), depth = weight.shape[1] * taps;
  if (depth == taps && rows == 1) return product(spatial(out)) <= 256 && x.shape[1] >= 16;
  const bool many = x.shape[0] >= 4 && taps > 1 && product(window.stride) == 1;
  return !many && rows * int64_t{sizeof(T)} >= 32 && depth >= 64;
}
template <class T> void run_by_pixels(const Call& call, const PixelKernels<T>& kernels) {
  ByPixels<T>(call, kernels.columns).run(kernels, threads_of(call));
}
template <class T> uint64_t pixels_workspace(const Call& call, int64_t columns) {
  return ByPixels<T>(call, columns).workspace(threads_of(call));
}

template bool is_better_by_pixels<float>(const Call&);
template bool is_better_by_pixels<double>(const Call&);
template void run_by_pixels<float>(const Call&, const PixelKernels<float>&);
template void run_by_pixels<double>(const Call&, const PixelKernels<double>&);
template uint64_t pixels_workspace<float>(const Call&, int64_t);
template uint64_t pixels_workspace<double>(const Call&, int64_t);

}  // namespace plugrad::cpu
