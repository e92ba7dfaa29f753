#include <backends/cpu/convolution.hpp>

#include <backends/cpu/windows.hpp>

namespace plugrad::cpu {
namespace {

constexpr int64_t kPlaneBytes = 1 << 20;   // the most bytes of planes at a time
constexpr int64_t kWindowBytes = 28672;    // of planes read by a panel of results: they fit the L1 cache
constexpr int64_t kWeightBytes = 24576;    // of weights read by a strip of positions: they fit it, too
constexpr int64_t kPartRows = 128;         // of weights
constexpr int64_t kMergedPositions = 256;  // small images share planes up to this many positions
constexpr int64_t kTasks = 8;              // enough for several threads
constexpr int64_t kTaskWork = 1 << 20;     // multiplications worth a task

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

struct Windows : WindowShape {
  using WindowShape::WindowShape;

  // Windows over x: one phase.
  PlaneAxis of_input(int i, int64_t extent, int64_t count) const {
    Phase all{0, 1, count, {}};
    for (int64_t k = 0; k < size[i]; ++k) {
      const int64_t at = k * dilation[i] - padding[i], shift = floor_div(at, stride[i]);
      all.taps.push_back({k, at - shift * stride[i], shift});
    }
    return {extent, stride[i], {std::move(all)}};
  }
  std::array<PlaneAxis, 3> over_input(const Extents& x, const Extents& counts) const {
    return {of_input(0, x[0], counts[0]), of_input(1, x[1], counts[1]), of_input(2, x[2], counts[2])};
  }

  // Windows that add to elements of x: one phase for each element of a step.
  PlaneAxis of_output(int i, int64_t extent, int64_t count) const {
    PlaneAxis axis{extent, 1, {}};
    for (int64_t first = 0; first < std::min(stride[i], count); ++first) {
      Phase phase{first, stride[i], ceil_div(count - first, stride[i]), {}};
      for (int64_t k = 0; k < size[i]; ++k) {
        const int64_t at = first + padding[i] - k * dilation[i], shift = floor_div(at, stride[i]);
        if (shift * stride[i] == at) phase.taps.push_back({k, 0, shift});
      }
      axis.phases.push_back(std::move(phase));
    }
    return axis;
  }
  std::array<PlaneAxis, 3> over_output(const Extents& grad, const Extents& counts) const {
    return {of_output(0, grad[0], counts[0]), of_output(1, grad[1], counts[1]), of_output(2, grad[2], counts[2])};
  }
};

// --- Results of products with weights: the convolution, and the gradient of its input.

// How weights are read: as (groups, rows, channels, window).
struct WeightOrder {
  int64_t group, row, channel;  // steps in elements
  bool taps_first;              // the products' order: tap by tap, in the blocks of sum_blocks; or channel by channel
};

template <class T> class Correlating {
 public:
  Correlating(const Call& call, std::array<PlaneAxis, 3> axes, int64_t rows, int64_t channels, const Windows& windows,
              WeightOrder order)
      : call_(call), rows_(rows), channels_(channels), images_(call.out().shape[0]), groups_(windows.groups),
        size_(windows.size), order_(order), extents_(spatial(call.out())), planes_(std::move(axes), channels, 1) {
    planes_.cut(kPlaneBytes / kSize);
    if (planes_.boxes() == 1 && planes_.count(0) == 1 && planes_.image_step() < kMergedPositions / 2)
      planes_.merge(std::min(images_, ceil_div(kMergedPositions, planes_.image_step())));
    image_groups_ = ceil_div(images_, planes_.images());
    const int64_t tasks = image_groups_ * groups_ * planes_.boxes();
    const int64_t work = rows_ * channels_ * product(size_) * product(extents_) * images_ / tasks;
    splits_ = tasks >= kTasks ? 1 : std::clamp<int64_t>(std::min(ceil_div(kTasks, tasks), work / kTaskWork), 1, rows_);
    by_rows_ = is_better_by_rows();
    parts_ = splits_ * ceil_div(ceil_div(rows_, splits_), by_rows_ ? kRowPanel<T> : kPartRows);
    width_ = ceil_div(ceil_div(rows_, parts_), kLanes) * kLanes;
    tasks_ = tasks * splits_;
  }

  uint64_t workspace(int threads) const {
    return static_cast<uint64_t>(weight_elements() + slots(threads) * slot_elements()) * kSize;
  }

  void run(const ConvolutionKernels<T>& kernels, int threads) {
    list_jobs();
    T* const weights = reinterpret_cast<T*>(call_.workspace());
    pack_weights(kernels, threads, weights);
    T* const slots_begin = weights + weight_elements();
    parallel_in_slots(threads, slots(threads), tasks_, [&](int64_t slot, int64_t task) {
      run_task(kernels, task, weights, slots_begin + slot * slot_elements());
    });
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = 64 / kSize;  // a multiple of the lanes of any kernel

  // One phase of the result along each axis, with its share of the weights.
  struct Job {
    std::array<const Phase*, 3> phases;
    std::vector<int64_t> distances, block_ends;
    int64_t before;  // columns of weights in the jobs before it
    int64_t depth() const { return static_cast<int64_t>(distances.size()); }
    int64_t lines() const { return static_cast<int64_t>(phases[0]->taps.size() * phases[1]->taps.size()); }
    int64_t taps() const { return lines() * static_cast<int64_t>(phases[2]->taps.size()); }
  };

  // Vectors of positions also hold positions between two lines. Vectors of rows may be partly empty, and their results are
  // transposed, at the cost of about 10 products. Measured on Emerald Rapids.
  bool is_better_by_rows() const {
    if (planes_.images() * lines() * columns() * kRowPanel<T> * kSize > kPlaneBytes) return false;
    const int64_t span = (planes_.images() - 1) * planes_.image_step() + (lines() - 1) * planes_.line_step() + columns();
    const auto whole = [](int64_t lanes) { return static_cast<double>(ceil_div(lanes, kLanes) * kLanes); };
    const double by_positions = whole(span) / static_cast<double>(planes_.images() * lines() * columns());
    const int64_t rows = ceil_div(rows_, splits_);
    const double by_rows = whole(rows) / static_cast<double>(rows) * (rows > kLanes ? 1.05 : 1.3);
    const double depth = static_cast<double>(channels_ * product(size_));
    return by_rows * (depth + 10) < by_positions * depth;
  }
  int64_t part_elements() const { return (channels_ * product(size_) + 1) * width_; }  // the bias is the first row
  int64_t weight_elements() const {
    return groups_ * (by_rows_ ? parts_ * part_elements() : rows_ * channels_ * product(size_));
  }
  int64_t lines() const { return planes_.cut_axis() == 1 ? planes_.box() : planes_.count(1); }
  int64_t columns() const { return planes_.cut_axis() == 2 ? planes_.box() : planes_.count(2); }
  int64_t slots(int threads) const { return std::min<int64_t>(threads, tasks_); }
  int64_t slot_elements() const {
    if (by_rows_) return ceil_div(planes_.elements() + planes_.images() * lines() * columns() * width_, 64) * 64;
    const int64_t rows = ceil_div(rows_, parts_), sums = rows * kPanels * kPanelElements<T> / (rows == 1 ? 1 : 2);
    return ceil_div(planes_.elements() + sums, 64) * 64;
  }
  int64_t part_begin(int64_t part) const { return part * rows_ / parts_; }

  void list_jobs() {
    int64_t before = 0;
    for (const Phase& d : planes_.axis(0).phases)
      for (const Phase& h : planes_.axis(1).phases)
        for (const Phase& w : planes_.axis(2).phases) {
          jobs_.push_back({{&d, &h, &w}, planes_.distances({&d, &h, &w}, order_.taps_first), {}, before});
          list_blocks(jobs_.back());
          before += jobs_.back().depth();
        }
  }

  T* part_weights(T* weights, int64_t group, const Job& job, int64_t part) const {
    if (by_rows_) return weights + (group * parts_ + part) * part_elements() + (1 + job.before) * width_;
    return weights + group * rows_ * channels_ * product(size_) + job.before * rows_ + part_begin(part) * job.depth();
  }

  void pack_weights(const ConvolutionKernels<T>& kernels, int threads, T* weights) const {
    parallel(threads, groups_ * parts_, [&](int64_t i) {
      const int64_t group = i / parts_, part = i % parts_, begin = part_begin(part), rows = part_begin(part + 1) - begin;
      const T* from = data<T>(call_.in(1)) + group * order_.group + begin * order_.row;
      if (by_rows_) {
        T* const all = weights + i * part_elements();
        if (rows < width_) std::fill_n(all, part_elements(), T(0));
        if (has_bias()) std::copy_n(data<T>(call_.in(2)) + group * rows_ + begin, rows, all);
      }
      for (const Job& job : jobs_) {
        T* const to = part_weights(weights, group, job, part);
        if (by_rows_) {
          pack_rows(kernels, from, job, rows, to, width_);
          continue;
        }
        const EqualStrips strips{rows};
        for (int64_t s = 0; s < strips.count(); ++s) {
          const int64_t first = strips.begin(s), some = strips.begin(s + 1) - first;
          pack_rows(kernels, from + first * order_.row, job, some, to + first * job.depth(), some);
        }
      }
    });
  }
  // Puts rows side by side, with `width` elements for each product.
  void pack_rows(const ConvolutionKernels<T>& kernels, const T* from, const Job& job, int64_t rows, T* to,
                 int64_t width) const {
    const int64_t taps = product(size_);
    if (order_.taps_first) {  // a single job has all taps
      for (int64_t tap = 0; tap < taps; ++tap)
        kernels.copy(channels_, rows, {from + tap, order_.channel, order_.row}, to + tap * channels_ * width, width);
      return;
    }
    if (job.taps() == taps) {  // in the order of the weights
      const int64_t runs = order_.channel == taps ? 1 : channels_, length = channels_ * taps / runs;
      for (int64_t i = 0; i < runs; ++i)
        kernels.copy(length, rows, {from + i * order_.channel, 1, order_.row}, to + i * length * width, width);
      return;
    }
    for (int64_t c = 0; c < channels_; ++c)
      for (const Tap& d : job.phases[0]->taps)
        for (const Tap& h : job.phases[1]->taps)
          for (const Tap& w : job.phases[2]->taps) {
            const T* at = from + c * order_.channel + (d.weight * size_[1] + h.weight) * size_[2] + w.weight;
            for (int64_t r = 0; r < rows; ++r) to[r] = at[r * order_.row];
            to += width;
          }
  }
  bool has_bias() const { return call_.op().inputs == 3; }

  void run_task(const ConvolutionKernels<T>& kernels, int64_t task, T* weights, T* slot) const {
    const int64_t split = task % splits_, box = task / splits_ % planes_.boxes();
    const int64_t group = task / splits_ / planes_.boxes() % groups_, first = task / splits_ / planes_.boxes() / groups_;
    const int64_t image = first * planes_.images(), images = std::min(planes_.images(), images_ - image);
    const plugrad_view& x = call_.in(0);
    const int64_t plane = product(spatial(x)), image_stride = x.shape[1] * plane;
    planes_.copy(kernels.copy_line, data<T>(x) + image * image_stride + group * channels_ * plane, image_stride, images,
                 channels_, box * planes_.box(), slot);
    Correlation<T> c{};
    c.planes = slot;
    c.sums = slot + planes_.elements();
    c.images = images;
    for (int64_t part = split * parts_ / splits_; part < (split + 1) * parts_ / splits_; ++part) {
      const int64_t row = group * rows_ + part_begin(part);
      c.rows = part_begin(part + 1) - part_begin(part);
      c.width = width_;
      c.bias = !has_bias() ? nullptr
               : by_rows_  ? weights + (group * parts_ + part) * part_elements()
                           : data<T>(call_.in(2)) + row;
      c.out = data<T>(call_.out()) + (image * call_.out().shape[1] + row) * product(extents_);
      for (const Job& job : jobs_) {
        c.weights = part_weights(weights, group, job, part);
        run_job(kernels, job, box, c);
      }
    }
  }

  // The positions of a phase in a box: c.out is at the first row's first element.
  void run_job(const ConvolutionKernels<T>& kernels, const Job& job, int64_t box, Correlation<T> c) const {
    Extents counts, steps{extents_[1] * extents_[2], extents_[2], 1};
    T* out = c.out;
    for (int i = 0; i < 3; ++i) {
      const Phase& phase = *job.phases[i];
      const int64_t from = i == planes_.cut_axis() ? box * planes_.box() : 0;
      counts[i] = std::min(phase.count - from, i == planes_.cut_axis() ? planes_.box() : phase.count);
      out += (phase.first + from * phase.step) * steps[i];
      steps[i] *= phase.step;
    }
    if (std::ranges::any_of(counts, [](int64_t count) { return count <= 0; })) return;
    c.depth = job.depth();
    c.block_ends = job.block_ends.data();
    c.distances = job.distances.data();
    c.image_step = planes_.image_step();
    c.lines = counts[1];
    c.line_step = planes_.line_step();
    c.columns = counts[2];
    c.out_row = product(extents_);
    c.out_image = call_.out().shape[1] * c.out_row;
    c.out_line = steps[1];
    c.out_column = steps[2];
    if (c.columns == c.line_step && c.out_column == 1 && c.out_line == c.columns) {  // the lines form a single line
      c.columns *= c.lines;
      c.line_step = c.image_step;
      c.lines = 1;
    }
    const T* planes = c.planes;
    for (int64_t d = 0; d < counts[0]; ++d) {
      c.planes = planes + d * planes_.slice_step();
      c.out = out + d * steps[0];
      if (c.depth == 0) fill(c);
      else if (by_rows_) kernels.correlate_rows(c);
      else kernels.correlate(c);
    }
  }

  // Fills elements without products.
  static void fill(const Correlation<T>& c) {
    for (int64_t image = 0; image < c.images; ++image)
      for (int64_t row = 0; row < c.rows; ++row)
        for (int64_t line = 0; line < c.lines; ++line) {
          T* to = c.out + image * c.out_image + row * c.out_row + line * c.out_line;
          for (int64_t i = 0; i < c.columns; ++i) to[i * c.out_column] = c.bias ? c.bias[row] : T(0);
        }
  }

  void list_blocks(Job& job) const {
    if (order_.taps_first) {
      for (const SumBlock& each : sum_blocks<T>(job.taps(), channels_))
        job.block_ends.push_back((each.tap + each.taps - 1) * channels_ + each.channel + each.channels);
      return;
    }
    for (int64_t end = 0; end < job.depth();) job.block_ends.push_back(end = std::min(job.depth(), end + block_of(job)));
  }
  // Returns a number of products such that the planes read by a panel, or the weights, fit the L1 cache.
  int64_t block_of(const Job& job) const {
    const int64_t depth = std::max<int64_t>(job.depth(), 1);
    if (by_rows_) return ceil_div(depth, ceil_div(depth, kWeightBytes / kSize / width_));
    const int64_t channel = job.lines() * (kPanelElements<T> / 2 + 16) * kSize;
    const int64_t most = std::clamp<int64_t>(kWindowBytes / std::max<int64_t>(channel, 1) * job.taps(), 64, 2048 / kSize);
    return ceil_div(depth, ceil_div(depth, most));
  }

  const Call& call_;
  int64_t rows_, channels_, images_, groups_;
  Extents size_;
  WeightOrder order_;
  Extents extents_;
  Planes planes_;
  int64_t image_groups_, splits_, parts_, tasks_;
  bool by_rows_;   // vectors hold rows, not positions
  int64_t width_;  // of a part, if they do
  std::vector<Job> jobs_;
};

template <class T> Correlating<T> forward_plan(const Call& call) {
  const plugrad_view &x = call.in(0), &weight = call.in(1);
  const Windows windows(weight, call.attributes<plugrad_convolution>());
  const int64_t rows = weight.shape[0] / windows.groups, channels = weight.shape[1], size = product(windows.size);
  return {call,    windows.over_input(spatial(x), spatial(call.out())),  rows, channels,
          windows, {rows * channels * size, channels * size, size, true}};
}
template <class T> Correlating<T> input_gradient_plan(const Call& call) {
  const plugrad_view &grad = call.in(0), &weight = call.in(1);
  const Windows windows(weight, call.attributes<plugrad_convolution>());
  const int64_t channels = weight.shape[0] / windows.groups, rows = weight.shape[1], size = product(windows.size);
  return {call,    windows.over_output(spatial(grad), spatial(call.out())), rows, channels,
          windows, {rows * channels * size, size, rows * size, false}};
}

}  // namespace

template <class T> uint64_t convolution_workspace(const Call& call) {
  return forward_plan<T>(call).workspace(threads_of(call));
}
template <class T> void run_convolution(const Call& call, const ConvolutionKernels<T>& kernels) {
  forward_plan<T>(call).run(kernels, threads_of(call));
}
template <class T> uint64_t input_gradient_workspace(const Call& call) {
  return input_gradient_plan<T>(call).workspace(threads_of(call));
}
template <class T> void run_input_gradient(const Call& call, const ConvolutionKernels<T>& kernels) {
  input_gradient_plan<T>(call).run(kernels, threads_of(call));
}

// --- The gradient of weights.

namespace {
template <class T> class WeightGradients {
 public:
  explicit WeightGradients(const Call& call)
      : call_(call), windows_(call.out(), call.attributes<plugrad_convolution>()), images_(call.in(0).shape[0]),
        rows_(call.out().shape[0] / windows_.groups), channels_(call.out().shape[1]), taps_(product(windows_.size)),
        width_(ceil_div(rows_, kLanes) * kLanes), result_(spatial(call.in(0))), source_(spatial(call.in(1))),
        planes_(make_planes(channels_)), few_(is_for_few_rows()) {
    plan_items();
    const int64_t all = windows_.groups * sums_elements();
    parts_ = std::min(items_, std::clamp<int64_t>(kPartBytes / kSize / all, 1, kTasks));
    // Too few parts for the threads: some channels each.
    const int64_t tasks = windows_.groups * parts_, work = images_ * rows_ * depth() * product(result_) / parts_;
    blocks_ = tasks < kTasks && work > kTasks * kTaskWork ? std::min(channels_, ceil_div(kTasks, tasks)) : 1;
    if (blocks_ > 1) {
      planes_ = make_planes(ceil_div(channels_, blocks_));
      plan_items();
    }
  }

  uint64_t workspace(int threads) const {
    return static_cast<uint64_t>(windows_.groups * parts_ * sums_elements() + slots(threads) * slot_elements()) * kSize;
  }

  void run(const ConvolutionKernels<T>& kernels, int threads) {
    T* const sums = reinterpret_cast<T*>(call_.workspace());
    T* const slots_begin = sums + windows_.groups * parts_ * sums_elements();
    list_places();
    distances_ = planes_.distances({&planes_.axis(0).phases[0], &planes_.axis(1).phases[0], &planes_.axis(2).phases[0]});
    parallel_in_slots(threads, slots(threads), tasks(), [&](int64_t slot, int64_t task) {
      run_task(kernels, task / blocks_, task % blocks_, slots_begin + slot * slot_elements(), sums);
    });
    finish(kernels, threads, sums);
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = 64 / kSize;     // a multiple of the lanes of any kernel
  static constexpr int64_t kPositions = 128;        // positions whose gradients are transposed at a time
  static constexpr int64_t kPartBytes = 4 << 20;    // the most bytes of sums
  static constexpr int64_t kMergedBytes = 1 << 17;  // of planes of several images

  Planes make_planes(int64_t channels) const {
    Planes planes(windows_.over_input(source_, result_), channels, 1);
    planes.cut(kPlaneBytes / kSize);
    return planes;
  }
  // Transposing a gradient costs about as much as 5 products, and few rows leave lanes unused. The kernel for few rows
  // leaves lanes unused where a line ends within a vector, and takes 1.4 times as long for a product. Measured on Emerald
  // Rapids.
  bool is_for_few_rows() const {
    const double columns = static_cast<double>(ceil_div(result_[2], kLanes) * kLanes) / static_cast<double>(result_[2]);
    const double unused = static_cast<double>(width_) / static_cast<double>(rows_) - 1.4 * columns;
    return static_cast<double>(depth()) * unused + 5 > 0;
  }
  // An item has a set of planes: some images, or a box of one image.
  void plan_items() {
    const int64_t some = few_ ? kMergedBytes / kSize / planes_.elements() : kPositions / product(result_);
    if (planes_.boxes() == 1) planes_.merge(std::clamp<int64_t>(some, 1, ceil_div(images_, kTasks)));
    items_ = ceil_div(images_, planes_.images()) * planes_.boxes();
  }

  int64_t depth() const { return channels_ * taps_; }
  int64_t sums_elements() const { return ceil_div(depth() * width_, 64) * 64; }
  int64_t tasks() const { return windows_.groups * parts_ * blocks_; }
  int64_t slots(int threads) const { return std::min<int64_t>(threads, tasks()); }
  int64_t slot_elements() const { return ceil_div(planes_.elements() + (few_ ? 0 : kPositions * width_), 64) * 64; }

  // The places of the positions of a box, of each image.
  void list_places() {
    if (few_) return;
    Extents box = result_;
    box[planes_.cut_axis()] = planes_.box();
    for (int64_t i = 0; i < planes_.images(); ++i)
      for (int64_t d = 0; d < box[0]; ++d)
        for (int64_t h = 0; h < box[1]; ++h)
          for (int64_t w = 0; w < box[2]; ++w)
            places_.push_back(i * planes_.image_step() + d * planes_.slice_step() + h * planes_.line_step() + w);
  }

  // The items of a part, for a block of channels.
  void run_task(const ConvolutionKernels<T>& kernels, int64_t i, int64_t block, T* slot, T* sums) const {
    const int64_t begin = block * channels_ / blocks_, channels = (block + 1) * channels_ / blocks_ - begin;
    T* const to = sums + i * sums_elements() + begin * taps_ * (few_ ? 1 : width_);
    const int64_t rows = few_ ? rows_ : 1, row = few_ ? channels * taps_ : channels * taps_ * width_;
    for (int64_t r = 0; r < rows; ++r) std::fill_n(to + r * depth(), row, T(0));
    const int64_t part = i % parts_;
    for (int64_t item = part * items_ / parts_; item < (part + 1) * items_ / parts_; ++item)
      add_item(kernels, i / parts_, item, {begin, channels}, slot, to);
  }

  struct Channels {
    int64_t begin, count;
  };
  void add_item(const ConvolutionKernels<T>& kernels, int64_t group, int64_t item, Channels channels, T* slot,
                T* sums) const {
    const int64_t image = item / planes_.boxes() * planes_.images(), images = std::min(planes_.images(), images_ - image);
    const int64_t from = item % planes_.boxes() * planes_.box(), all = product(source_) * call_.in(1).shape[1];
    const T* x = data<T>(call_.in(1)) + image * all + (group * channels_ + channels.begin) * product(source_);
    planes_.copy(kernels.copy_line, x, all, images, channels.count, from, slot);
    Extents box = result_;
    const int cut = planes_.cut_axis();
    box[cut] = std::min(planes_.box(), box[cut] - from);
    const int64_t skipped = from * (cut == 0 ? result_[1] * result_[2] : cut == 1 ? result_[2] : 1);
    const T* grad = data<T>(call_.in(0)) + (image * call_.in(0).shape[1] + group * rows_) * product(result_) + skipped;
    const int64_t depth = channels.count * taps_;
    if (few_) add_few(kernels, depth, slot, grad, images, box, sums);
    else add_transposed(kernels, depth, slot, grad, images, product(box), sums);
  }

  void add_few(const ConvolutionKernels<T>& kernels, int64_t depth_of, const T* planes, const T* grad, int64_t images,
               const Extents& box, T* sums) const {
    const int64_t slice = result_[1] * result_[2], all = call_.in(0).shape[1] * product(result_);
    for (int64_t d = 0; d < box[0]; ++d)
      kernels.few_rows_gradient({depth_of, rows_, planes + d * planes_.slice_step(), images, planes_.image_step(), box[1],
                                 planes_.line_step(), box[2], distances_.data(), grad + d * slice, product(result_), all,
                                 result_[2], sums, depth()});
  }

  void add_transposed(const ConvolutionKernels<T>& kernels, int64_t depth_of, T* planes, const T* grad, int64_t images,
                      int64_t positions, T* sums) const {
    T* const lines = planes + planes_.elements();
    for (int64_t at = 0; at < images * positions; at += kPositions) {
      const int64_t end = std::min(at + kPositions, images * positions);
      for (int64_t p = at; p < end; p = std::min(end, (p / positions + 1) * positions)) {
        const int64_t image = p / positions, some = std::min(end, (image + 1) * positions) - p;
        transpose(kernels, lines + (p - at) * width_,
                  grad + image * call_.in(0).shape[1] * product(result_) + p - image * positions, some);
      }
      kernels.weight_gradient({depth_of, width_, end - at, planes, distances_.data(), places_.data() + at, lines, sums});
    }
  }
  void transpose(const ConvolutionKernels<T>& kernels, T* lines, const T* grad, int64_t positions) const {
    if (rows_ < width_)
      for (int64_t p = 0; p < positions; ++p) std::fill(lines + p * width_ + rows_, lines + (p + 1) * width_, T(0));
    kernels.copy(positions, rows_, {grad, 1, product(result_)}, lines, width_);
  }

  // Adds up the parts, in their order.
  void finish(const ConvolutionKernels<T>& kernels, int threads, T* sums) const {
    constexpr int64_t kColumns = 64;
    const int64_t lines = few_ ? rows_ : ceil_div(depth(), kColumns);
    parallel(threads, windows_.groups * lines, [&](int64_t task) {
      const int64_t group = task / lines, line = task % lines, column = few_ ? 0 : line * kColumns;
      const int64_t columns = few_ ? depth() : std::min(kColumns, depth() - column);
      T* const from = sums + group * parts_ * sums_elements() + (few_ ? line * depth() : column * width_);
      const int64_t count = few_ ? columns : columns * width_;
      for (int64_t part = 1; part < parts_; ++part)
        for (int64_t i = 0; i < count; ++i) from[i] += from[part * sums_elements() + i];
      T* const to = data<T>(call_.out()) + group * rows_ * depth();
      if (few_) std::copy_n(from, count, to + line * depth());
      else kernels.copy(rows_, columns, {from, 1, width_}, to + column, depth());
    });
  }

  const Call& call_;
  Windows windows_;
  int64_t images_, rows_, channels_, taps_, width_;
  Extents result_, source_;
  Planes planes_;
  bool few_;
  int64_t items_, parts_, blocks_;
  std::vector<int64_t> places_, distances_;
};
}  // namespace

template <class T> uint64_t weight_gradient_workspace(const Call& call) {
  return WeightGradients<T>(call).workspace(threads_of(call));
}
template <class T> void run_weight_gradient(const Call& call, const ConvolutionKernels<T>& kernels) {
  WeightGradients<T>(call).run(kernels, threads_of(call));
}

template uint64_t convolution_workspace<float>(const Call&);
template uint64_t convolution_workspace<double>(const Call&);
template void run_convolution(const Call&, const ConvolutionKernels<float>&);
template void run_convolution(const Call&, const ConvolutionKernels<double>&);
template uint64_t input_gradient_workspace<float>(const Call&);
template uint64_t input_gradient_workspace<double>(const Call&);
template void run_input_gradient(const Call&, const ConvolutionKernels<float>&);
template void run_input_gradient(const Call&, const ConvolutionKernels<double>&);
template uint64_t weight_gradient_workspace<float>(const Call&);
template uint64_t weight_gradient_workspace<double>(const Call&);
template void run_weight_gradient(const Call&, const ConvolutionKernels<float>&);
template void run_weight_gradient(const Call&, const ConvolutionKernels<double>&);

}  // namespace plugrad::cpu
