#include <backends/cpu/pixels.hpp>

#include <backends/cpu/pool.hpp>
#include <backends/cpu/windows.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace plugrad::cpu {
namespace {

constexpr int64_t kMostPositions = 96, kTableEntries = 4096;  // of a task, and of its table of pixels
constexpr int64_t kStrip = 6;                                 // positions that a kernel computes at a time
constexpr int64_t kDepthwiseColumns = 256;
constexpr int64_t kCopied = 256;          // pixels copied by a task
constexpr int64_t kNearBytes = 1 << 19;   // of weights that stay in the L2 cache from one task to the next
constexpr int64_t kImageBytes = 1 << 20;  // of images copied at a time
constexpr int64_t kTasks = 8;             // enough for several threads
constexpr int64_t kTaskWork = 1 << 19;    // multiplications worth a task
constexpr int64_t kPacked = 8192;         // elements transposed at a time
constexpr int64_t kFewChannels = 16;      // with fewer channels, the taps of a line are worth a single run
constexpr int64_t kOutside = INT64_MIN;
template <class T> constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));  // a multiple of the lanes of any kernel

// Tensors (n, c, d, h, w), by the steps between their elements.
struct Steps {
  int64_t image, channel;
  Extents axis{};

  explicit Steps(const plugrad_view& v) : image(v.strides[0]), channel(v.shape[1] == 1 ? 1 : v.strides[1]) {
    if (v.shape[0] == 1) image = 0;
    for (int i = 2; i < v.rank; ++i) axis[3 - (v.rank - i)] = v.shape[i] == 1 ? 0 : v.strides[i];
  }
};

// The weights of a convolution in panels of rows: tap by tap and channel by channel, a line of a panel's rows.
template <class T> class PixelWeights {
 public:
  // columns: the most of a panel
  // images: how many images of a single channel share a single row; they are computed as the channels of one image.
  PixelWeights(const plugrad_view& weight, const plugrad_convolution& given, int64_t columns, int64_t images = 1)
      : weight_(weight), window_(weight, given), groups_(given.groups), channels_(weight.shape[1]),
        rows_(weight.shape[0] / given.groups), depthwise_(channels_ == 1 && rows_ == 1) {
    if (depthwise_) std::swap(groups_, rows_);
    if (images > 1) rows_ = images;
    panel_ = depthwise_ ? kDepthwiseColumns : columns;
  }
  const WindowShape& window() const { return window_; }
  bool is_depthwise() const { return depthwise_; }
  int64_t groups() const { return groups_; }      // depthwise there is a single group
  int64_t channels() const { return channels_; }  // of a row
  int64_t rows() const { return rows_; }          // of a group
  int64_t taps() const { return product(window_.size); }
  int64_t panel() const { return panel_; }
  int64_t panels() const { return ceil_div(rows_, panel_); }  // of a group
  int64_t rows_of(int64_t panel) const { return std::min(panel_, rows_ - panel * panel_); }
  int64_t columns_of(int64_t panel) const { return ceil_div(rows_of(panel), kLanes<T>) * kLanes<T>; }
  int64_t columns() const { return ceil_div(rows_, kLanes<T>) * kLanes<T>; }  // of all panels of a group
  int64_t elements() const { return groups_ * columns() * taps() * channels_; }

  const T* panel_at(const T* packed, int64_t group, int64_t panel) const {
    return packed + (group * columns() + panel * panel_) * taps() * channels_;
  }
  void pack(const PixelKernels<T>& kernels, int threads, T* packed) const {
    parallel(threads, groups_ * panels(), [&](int64_t i) {
      const int64_t group = i / panels(), panel = i % panels(), rows = rows_of(panel), columns = columns_of(panel);
      T* const to = const_cast<T*>(panel_at(packed, group, panel));
      if (rows < columns) std::fill_n(to, taps() * channels_ * columns, T(0));
      pack_panel(kernels, group * rows_ + panel * panel_, rows, columns, to);
    });
  }

 private:
  void pack_panel(const PixelKernels<T>& kernels, int64_t row, int64_t rows, int64_t columns, T* to) const {
    const Steps steps(weight_);
    const int64_t row_step = weight_.shape[0] == 1 ? 0 : weight_.strides[0],
                  channel = weight_.shape[1] == 1 ? 0 : weight_.strides[1];
    const T* const from = data<T>(weight_) + row * row_step;
    const int64_t taps = this->taps(), some = kPacked / columns / taps;
    if (is_dense(weight_) && taps > 1 && some > 0)
      return pack_dense(kernels, from, {rows, columns, taps, some, row_step}, to);
    for (int64_t d = 0; d < window_.size[0]; ++d)
      for (int64_t h = 0; h < window_.size[1]; ++h)
        for (int64_t w = 0; w < window_.size[2]; ++w, to += channels_ * columns)
          kernels.copy(channels_, rows,
                       {from + d * steps.axis[0] + h * steps.axis[1] + w * steps.axis[2], channel, row_step}, to, columns);
  }
  struct Panel {
    int64_t rows, columns, taps, channels, row_step;
  };
  // Transposes the products of some channels at a time: their order in memory is channel by channel and tap by tap.
  void pack_dense(const PixelKernels<T>& kernels, const T* from, const Panel& panel, T* to) const {
    alignas(64) T turned[kPacked];
    for (int64_t first = 0; first < channels_; first += panel.channels) {
      const int64_t some = std::min(panel.channels, channels_ - first);
      kernels.copy(some * panel.taps, panel.rows, {from + first * panel.taps, 1, panel.row_step}, turned, panel.columns);
      for (int64_t c = 0; c < some; ++c)
        for (int64_t tap = 0; tap < panel.taps; ++tap)
          std::copy_n(turned + (c * panel.taps + tap) * panel.columns, panel.rows,
                      to + (tap * channels_ + first + c) * panel.columns);
    }
  }
  const plugrad_view& weight_;
  WindowShape window_;
  int64_t groups_, channels_, rows_;
  bool depthwise_;
  int64_t panel_;
};

// Whether the images of a single channel are computed as channels: sums of windows, the same for all channels.
bool shares_a_row(const Call& call) {
  return call.in(1).shape[0] == 1 && call.in(0).shape[1] == 1 && call.in(0).shape[0] > 1;
}

template <class T> class ByPixels {
 public:
  // packed: the packed weights, or null; then each run packs them.
  ByPixels(const Call& call, int64_t columns, const T* packed)
      : call_(call),
        weights_(call.in(1), call.attributes<plugrad_convolution>(), columns, shares_a_row(call) ? call.in(0).shape[0] : 1),
        window_(weights_.window()), packed_(packed), x_(call.in(0)), out_(call.out()), extent_(spatial(call.in(0))),
        count_(spatial(call.out())), images_(call.out().shape[0]), all_channels_(call.in(0).shape[1]),
        channels_(weights_.channels()), depthwise_(weights_.is_depthwise()), taps_(weights_.taps()) {
    if (shares_a_row(call)) take_images_as_channels();
    run_ = depthwise_ ? all_channels_ : channels_;
    blocks_ = sum_blocks<T>(taps_, channels_);
    copies_ = x_.channel != 1 || (!depthwise_ && window_.size[2] > 1 && channels_ < kFewChannels);
    if (copies_) plan_copy();
    list_offsets();
    plan_tasks();
  }

  uint64_t workspace(int threads) const {
    return static_cast<uint64_t>(packed_elements() + bias_elements() + zero_elements() + copy_elements() +
                                 slots(threads) * slot_elements()) *
           kSize;
  }

  void run(const PixelKernels<T>& kernels, int threads) {
    T* const own = reinterpret_cast<T*>(call_.workspace());
    if (!packed_) weights_.pack(kernels, threads, own);
    T* const bias = own + packed_elements();
    copy_bias(bias);
    T* const zeros = bias + bias_elements();
    std::fill_n(zeros, zero_elements(), T(0));
    T* const copy = zeros + zero_elements();
    T* const slots_begin = copy + copy_elements();
    for (int64_t image = 0; image < images_; image += some_images_) {
      const int64_t some = std::min(some_images_, images_ - image), tasks = ceil_div(some * product(count_), positions_);
      if (copies_) copy_images(kernels, threads, image, some, copy);
      const T* const x = copies_ ? copy : data<T>(call_.in(0)) + image * x_.image;
      parallel_in_slots(threads, slots(threads), tasks * weights_.groups() * splits_, [&](int64_t slot, int64_t task) {
        run_task(kernels, task, some, image, {x, zeros, packed_ ? packed_ : own, bias},
                 slots_begin + slot * slot_elements());
      });
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T);

  // --- The plan.

  void take_images_as_channels() {
    all_channels_ = std::exchange(images_, 1);
    x_.channel = std::exchange(x_.image, 0);
    out_.channel = std::exchange(out_.image, 0);
  }

  // The images are copied with the zeros around them. The taps of a line may then be a single run of channels.
  void plan_copy() {
    for (int i = 0; i < 3; ++i)
      padded_[i] = (count_[i] - 1) * window_.stride[i] + (window_.size[i] - 1) * window_.dilation[i] + 1;
    const int64_t pixel = all_channels_;
    x_.channel = 1;
    x_.axis = {padded_[1] * padded_[2] * pixel, padded_[2] * pixel, pixel};
    x_.image = padded_[0] * x_.axis[0];
    if (depthwise_ || weights_.groups() > 1 || window_.dilation[2] > 1) return;
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

  // The distance of a tap's element from the image's first element, for each tap and position along an axis.
  void list_offsets() {
    for (int i = 0; i < 3; ++i) {
      const int64_t taps = taps_along(i);
      for (int64_t k = 0; k < taps; ++k)
        for (int64_t at = 0; at < count_[i]; ++at) {
          const int64_t element = at * window_.stride[i] + k * window_.dilation[i] - (copies_ ? 0 : window_.padding[i]);
          const bool inside = copies_ || (element >= 0 && element < extent_[i]);
          offsets_[i].push_back(inside ? element * x_.axis[i] : kOutside);
        }
    }
  }
  int64_t taps_along(int i) const { return i == 2 && line_taps_ ? line_taps_ : window_.size[i]; }

  void plan_tasks() {
    some_images_ = images_;
    if (copies_) some_images_ = std::clamp<int64_t>(kImageBytes / kSize / std::max<int64_t>(x_.image, 1), 1, images_);
    const int64_t all = some_images_ * product(count_), most = std::clamp<int64_t>(kTableEntries / taps_, 8, kMostPositions);
    positions_ = std::min(ceil_div(ceil_div(all, ceil_div(all, most)), kStrip) * kStrip, all);  // tasks of nearly equal size
    const int64_t tasks = ceil_div(all, positions_) * weights_.groups();
    const int64_t work = positions_ * weights_.rows() * taps_ * (depthwise_ ? 1 : run_);
    splits_ =
        tasks >= kTasks ? 1 : std::clamp<int64_t>(std::min(ceil_div(kTasks, tasks), work / kTaskWork), 1, weights_.panels());
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

  int64_t packed_elements() const { return packed_ ? 0 : weights_.elements(); }
  int64_t bias_elements() const { return weights_.groups() * weights_.columns(); }
  int64_t zero_elements() const { return ceil_div(run_, kLanes<T>) * kLanes<T>; }
  int64_t copy_elements() const { return copies_ ? ceil_div(some_images_ * x_.image, kLanes<T>) * kLanes<T> : 0; }
  int64_t slots(int threads) const { return std::min<int64_t>(threads, tasks_); }
  int64_t slot_elements() const {
    const int64_t table = ceil_div(positions_ * taps_ * static_cast<int64_t>(sizeof(T*)), kSize);
    return ceil_div(table + (stores_directly_ ? 0 : positions_ * weights_.panel()), kLanes<T>) * kLanes<T>;
  }

  void copy_bias(T* to) const {
    std::fill_n(to, bias_elements(), T(0));
    if (call_.op().inputs < 3) return;
    const plugrad_view& bias = call_.in(2);
    const int64_t step = bias.shape[0] == 1 ? 0 : bias.strides[0];
    for (int64_t i = 0; i < weights_.groups() * weights_.rows(); ++i)
      to[i / weights_.rows() * weights_.columns() + i % weights_.rows()] = data<T>(bias)[i * step];
  }

  // --- Images as pixels.

  void copy_images(const PixelKernels<T>& kernels, int threads, int64_t image, int64_t images, T* to) const {
    Steps from(call_.in(0));
    if (shares_a_row(call_)) from.channel = std::exchange(from.image, 0);
    const bool whole = padded_ == extent_ && window_.padding == Extents{} && from.axis[2] == 1 &&
                       from.axis[1] == extent_[2] && (extent_[0] == 1 || from.axis[0] == extent_[1] * extent_[2]);
    if (whole) return copy_whole(kernels, threads, {image, images}, from, to);
    const int64_t lines = padded_[0] * padded_[1], length = x_.image / lines;
    parallel(threads, images * lines, [&](int64_t task) {
      const int64_t d = task % lines / padded_[1] - window_.padding[0], h = task % lines % padded_[1] - window_.padding[1];
      const T* const source = data<T>(call_.in(0)) + (image + task / lines) * from.image;
      T* line = to + task * length;
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

  struct Range {
    int64_t first, count;
  };
  // Images without padding, whose positions follow each other.
  void copy_whole(const PixelKernels<T>& kernels, int threads, Range images, const Steps& from, T* to) const {
    const int64_t pixels = product(extent_), parts = ceil_div(pixels, kCopied);
    parallel(threads, images.count * parts, [&](int64_t task) {
      const int64_t image = task / parts, first = task % parts * kCopied;
      const T* const source = data<T>(call_.in(0)) + (images.first + image) * from.image + first;
      kernels.copy(std::min(kCopied, pixels - first), all_channels_, {source, 1, from.channel},
                   to + (image * pixels + first) * all_channels_, all_channels_);
    });
  }

  // --- Tasks: some positions and some panels of a group.

  struct Memory {
    const T *x, *zeros, *weights, *bias;
  };

  void run_task(const PixelKernels<T>& kernels, int64_t task, int64_t images, int64_t image, const Memory& memory,
                T* slot) const {
    const int64_t groups = weights_.groups(), panel_rows = weights_.panel(), panels = weights_.panels();
    const int64_t split = task % splits_, group = task / splits_ % groups, first = task / splits_ / groups * positions_;
    const int64_t some = std::min(positions_, images * product(count_) - first);
    const T** const table = reinterpret_cast<const T**>(slot);
    T* const scratch = slot + slot_elements() - (stores_directly_ ? 0 : positions_ * panel_rows);
    list_pixels(memory, group * channels_, first, some, table);
    for (int64_t panel = split * panels / splits_; panel < (split + 1) * panels / splits_; ++panel) {
      PixelSums<T> s{};
      s.pixels = table;
      s.positions = some;
      s.columns = weights_.columns_of(panel);
      s.bias = memory.bias + group * weights_.columns() + panel * panel_rows;
      s.weights = weights_.panel_at(memory.weights, group, panel);
      s.rows = s.readable = weights_.rows_of(panel);
      T* const out =
          data<T>(call_.out()) + image * out_.image + (group * weights_.rows() + panel * panel_rows) * out_.channel;
      s.out = stores_directly_ ? out + first * position_step() : scratch;
      s.out_step = stores_directly_ ? position_step() : s.columns;
      if (!stores_directly_) s.rows = s.columns;
      sum(kernels, panel, s);
      if (!stores_directly_) store(kernels, scratch, first, some, {weights_.rows_of(panel), s.columns}, out);
    }
  }

  // The pixels of positions of the images at memory.x.
  void list_pixels(const Memory& memory, int64_t channel, int64_t first, int64_t some, const T** table) const {
    const auto [deep, high, wide] = std::array{taps_along(0), taps_along(1), taps_along(2)};
    for (int64_t p = 0; p < some;) {
      const int64_t at = first + p, w = at % count_[2], h = at / count_[2] % count_[1];
      const int64_t d = at / count_[2] / count_[1] % count_[0], run = std::min(some - p, count_[2] - w);
      const T* const image = memory.x + at / product(count_) * x_.image + channel;
      const T** to = table + p;
      for (int64_t i = 0; i < deep; ++i)
        for (int64_t j = 0; j < high; ++j) {
          const int64_t slice = offsets_[0][i * count_[0] + d], line = offsets_[1][j * count_[1] + h];
          if (slice == kOutside || line == kOutside) {
            for (int64_t k = 0; k < wide; ++k, to += some) std::fill_n(to, run, memory.zeros);
            continue;
          }
          for (int64_t k = 0; k < wide; ++k, to += some)
            list_line(image + slice + line, &offsets_[2][k * count_[2] + w], run, memory.zeros, to);
        }
      p += run;
    }
  }
  static void list_line(const T* line, const int64_t* offsets, int64_t count, const T* zeros, const T** to) {
    for (int64_t i = 0; i < count; ++i) to[i] = offsets[i] == kOutside ? zeros : line + offsets[i];
  }

  // Sums the products block by block: the L2 cache holds the weights of a block while all positions use them.
  void sum(const PixelKernels<T>& kernels, int64_t panel, PixelSums<T>& s) const {
    s.tap_step = s.positions;
    const T *const weights = s.weights, *const *const pixels = s.pixels;
    for (const SumBlock& block : blocks_) {
      s.pixels = pixels + block.tap * s.tap_step;
      s.taps = block.taps;
      s.first = depthwise_ ? panel * weights_.panel() : block.channel;
      s.channels = block.channels;
      s.fetches = weights_.elements() * kSize > kNearBytes;
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
  PixelWeights<T> weights_;
  WindowShape window_;
  const T* packed_;
  Steps x_, out_;  // x_: of the copy, if there is one
  Extents extent_, count_, padded_{};
  int64_t images_, all_channels_, channels_;  // channels_: of a group
  bool depthwise_, copies_, stores_directly_;
  int64_t taps_, run_, line_taps_ = 0;  // pixels of a result, and the elements read from each
  int64_t positions_, some_images_, splits_, tasks_;
  std::vector<SumBlock> blocks_;
  std::vector<int64_t> offsets_[3];
};

}  // namespace

bool is_dense(const Call& call) {
  for (int i = 0; i < call.op().outputs + call.op().inputs; ++i)
    if (!is_dense(*call.op().views[i])) return false;
  return true;
}

// Few products do not outweigh the transposition of the results, and few rows leave vectors partly empty. With many images,
// planes leave few lanes unused. Measured on Zen 4.
template <class T> bool is_better_by_pixels(const Call& call) {
  const plugrad_view &x = call.in(0), &weight = call.in(1), &out = call.out();
  const WindowShape window(weight, call.attributes<plugrad_convolution>());
  const int64_t rows = weight.shape[0] / window.groups, taps = product(window.size), depth = weight.shape[1] * taps;
  const bool dense = is_dense(call), few = rows * int64_t{sizeof(T)} < 64;
  if (shares_a_row(call)) return x.shape[0] * int64_t{sizeof(T)} >= 64;
  if (depth == taps && rows == 1) return !dense || (product(spatial(out)) <= 256 && x.shape[1] >= 16);
  const bool many = x.shape[0] >= 4 && taps > 1 && product(window.stride) == 1;
  return !few && (!dense || (!many && depth >= 64));
}
template <class T> bool gains_from_packing(const Call& call) { return is_better_by_pixels<T>(call) && !shares_a_row(call); }
template <class T> void run_by_pixels(const Call& call, const PixelKernels<T>& kernels, bool packed) {
  ByPixels<T>(call, kernels.columns, packed ? data<T>(call.in(1)) : nullptr).run(kernels, threads_of(call));
}
template <class T> uint64_t pixels_workspace(const Call& call, int64_t columns, bool packed) {
  static constexpr T kAnywhere{};  // the weights are not read
  return ByPixels<T>(call, columns, packed ? &kAnywhere : nullptr).workspace(threads_of(call));
}
template <class T>
uint64_t packed_weights_bytes(const plugrad_view& weight, const plugrad_convolution& given, int64_t columns) {
  return static_cast<uint64_t>(PixelWeights<T>(weight, given, columns).elements()) * sizeof(T);
}
template <class T> void pack_weights(const Call& call, const PixelKernels<T>& kernels) {
  const PixelWeights<T> weights(call.in(0), call.attributes<plugrad_convolution>(), kernels.columns);
  weights.pack(kernels, threads_of(call), data<T>(call.out()));
}

template bool is_better_by_pixels<float>(const Call&);
template bool is_better_by_pixels<double>(const Call&);
template bool gains_from_packing<float>(const Call&);
template bool gains_from_packing<double>(const Call&);
template void run_by_pixels(const Call&, const PixelKernels<float>&, bool);
template void run_by_pixels(const Call&, const PixelKernels<double>&, bool);
template uint64_t pixels_workspace<float>(const Call&, int64_t, bool);
template uint64_t pixels_workspace<double>(const Call&, int64_t, bool);
template uint64_t packed_weights_bytes<float>(const plugrad_view&, const plugrad_convolution&, int64_t);
template uint64_t packed_weights_bytes<double>(const plugrad_view&, const plugrad_convolution&, int64_t);
template void pack_weights(const Call&, const PixelKernels<float>&);
template void pack_weights(const Call&, const PixelKernels<double>&);

}  // namespace plugrad::cpu
