#include <backends/cpu/product.hpp>

#include <backends/cpu/contraction.hpp>

#include <algorithm>
#include <utility>

namespace plugrad::cpu {
namespace {

constexpr int64_t kReading = 16;          // the cost of reading an element for few products, in products
constexpr int64_t kVectorRows = 64;       // of a matrix for few vectors, in a tile
constexpr int64_t kStackBytes = 32768;    // a right operand of this size is transposed on the stack
constexpr int64_t kPanelBytes = 3 << 18;  // the most bytes of panels at a time: three quarters of an L2 cache of 1 MiB
constexpr int64_t kPlaceBytes = 1 << 20;  // a right operand of this size is multiplied in place
// If the kernels pack a left operand, they pack it again for every group of panels, so wide groups are worth more than long
// sums. Measured on Emerald Rapids.
constexpr int64_t kPackedDepth = 384;
constexpr int64_t kPackedRows = 128;  // of the right operand, in a task
// Tiles of the left operand's rows times all panels. The near cache holds the panels. Each tile packs or reads its rows only
// once.
constexpr int64_t kWideRows = 128, kWideColumns = 1024;

// Whether all tiles of m rows have three rows or more: a kernel sums each element of such rows product by product. For one
// or two rows several partial sums may take turns.
bool has_whole_strips(const Tiles& grid, int64_t m) { return std::min(grid.rows, m - (grid.down - 1) * grid.rows) >= 3; }

template <class T> class Product : Contraction<T> {
 public:
  explicit Product(const Call& call) : Contraction<T>(call), accumulates_(call.accumulates()) {
    if (is_better_transposed()) turn();
    if (n_ == 1) c_.column = 1;
    fold_batch();
    if (is_few_vectors()) {
      turn();
      few_ = true;
    }
    if (is_cheaper_swapped() || is_narrow()) turn();
    scratch_ = !few_ && (c_.column != 1 || (m_ > 1 && c_.row < n_));
    if (!is_multiplied_in_place()) plan_panels();
  }

  uint64_t workspace() const {
    return static_cast<uint64_t>(panel_elements() + (scratch_ ? batches_ * m_ * n_ : 0)) * sizeof(T);
  }

  // Whether each element is the sum of its slices' sums, product by product.
  bool sums_in_order() const {
    if (few_ || accumulates_ || batches_ != 1 || a_.column != 1 || n_ <= 2) return false;
    if (!panels_) return has_whole_strips(in_place_grid(), m_);
    const int64_t last = n_ - (n_ - 1) / width_ * width_;
    return has_whole_strips(panel_grid(width_, 1), m_) && has_whole_strips(panel_grid(last, 1), m_);
  }

  // Whether the tiles are tiles of the output.
  bool can_be_followed() const { return !is_turned_ && !scratch_ && n_ > 1; }
  void follow(const Following& following) { following_ = &following; }

  void run(const ProductKernels<T>& kernels, int threads, char* workspace) {
    T* panels = reinterpret_cast<T*>(workspace);
    target_ = c_;
    if (scratch_) prepare_scratch(threads, panels + panel_elements());
    if (panels_) multiply_panels(kernels, threads, panels);
    else multiply_in_place(kernels, threads);
    if (scratch_) copy<false>(threads, c_, target_.data);
  }

 private:
  using Base = Contraction<T>;
  using Base::a_, Base::b_, Base::c_, Base::m_, Base::n_, Base::k_, Base::rank_, Base::batch_, Base::batches_;
  using Base::has_addend_, Base::offset, Base::transpose, Base::fold_batch, Base::is_shared, Base::for_tiles;
  using Base::addend_at;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kWidest = 256 / kSize;  // a multiple of the columns of any kernel's panel

  void turn() {
    transpose();
    is_turned_ = !is_turned_;
  }

  // Products with a vector are dots of contiguous rows or sums of contiguous rows; the remaining products write contiguous
  // rows.
  bool is_better_transposed() const {
    if (n_ == 1) return a_.column != 1 && a_.row == 1;
    if (m_ == 1) return b_.column != 1 && b_.row == 1;
    return c_.column != 1 && c_.row == 1;
  }

  // A few rows times a matrix transposed in memory, as in the decoding of text.
  bool is_few_vectors() const {
    return m_ > 1 && m_ <= kFewVectors && n_ > kFewVectors && a_.column == 1 && a_.row != 1 && b_.row == 1 && b_.column != 1;
  }

  // The right operand is copied to panels. If it is transposed in memory, and the left operand and the output are much
  // smaller, it costs less to copy the smaller matrices.
  bool is_cheaper_swapped() const {
    return !few_ && m_ > 1 && a_.column == 1 && b_.row == 1 && b_.column != 1 && k_ * n_ * kSize > kStackBytes &&
           k_ * n_ > 2 * (m_ * k_ + 2 * m_ * n_);
  }

  // A few columns fill no vector, but the rows of a transposed left operand do.
  bool is_narrow() const {
    return !few_ && n_ > 1 && k_ > 1 && n_ * kSize <= 16 && m_ >= 4 * n_ && a_.row == 1 && a_.column != 1 && b_.column == 1;
  }

  // Panels cost a copy of b but are read faster. They do not pay for few rows, or if b fits the caches. Caches map rows to
  // few sets if the rows are a multiple of 512 bytes apart.
  bool is_multiplied_in_place() const {
    const int64_t bytes = k_ * n_ * kSize;
    const bool small = bytes <= kStackBytes, collides = b_.row * kSize % 512 == 0;
    if (few_ || n_ == 1 || (b_.column != 1 && small)) return true;
    return b_.column == 1 && (small || m_ <= 32 || (!collides && bytes <= kPlaceBytes));
  }

  // Panels hold all of b if it fits kPanelBytes, else some of its batches, or some slices or columns of one batch.
  void plan_panels() {
    panels_ = true;
    const int64_t most = kPanelBytes / kSize;
    depth_ = even_part(k_, a_.column == 1 ? kDepth<T> : std::min(kDepth<T>, kPackedDepth), 8);
    slices_ = ceil_div(k_, depth_);
    width_ = even_part(n_, most / depth_ / kWidest * kWidest, kWidest);
    deep_ = std::clamp<int64_t>(most / (depth_ * width_), 1, slices_);
    const bool whole = width_ >= n_ && deep_ == slices_;
    packs_ = !whole || is_shared(b_) ? 1 : std::clamp<int64_t>(most / (depth_ * width_ * slices_), 1, batches_);
    group_ = whole && is_shared(b_) ? batches_ : packs_;
  }
  int64_t panel_elements() const { return packs_ * deep_ * depth_ * width_; }

  // Copies matrices of the output's shape between strided and dense memory.
  template <bool into> void copy(int threads, const Operand<T>& o, T* dense) const {
    constexpr int64_t kBand = 32;
    const int64_t bands = ceil_div(m_, kBand);
    parallel(threads, batches_ * bands, [&](int64_t task) {
      const int64_t i = task / bands, first = task % bands * kBand, some = std::min(kBand, m_ - first);
      T* strided = o.data + offset(o, i) + first * o.row;
      T* packed = dense + (i * m_ + first) * n_;
      for (int64_t c = 0; c < n_; c += 64) {
        const Tile from{reinterpret_cast<char*>(strided + c * o.column), o.row * kSize, o.column * kSize};
        const Tile to{reinterpret_cast<char*>(packed + c), n_ * kSize, kSize};
        copy_tile(into ? to : from, into ? from : to, some, std::min<int64_t>(64, n_ - c), kSize);
      }
    });
  }

  void prepare_scratch(int threads, T* dense) {
    if (accumulates_) copy<true>(threads, c_, dense);
    target_.data = dense;
    target_.row = n_;
    target_.column = 1;
    int64_t step = m_ * n_;
    for (int d = rank_ - 1; d >= 0; step *= batch_[d--]) target_.batch[d] = step;
  }

  Matrix<const T> left(int64_t batch, int64_t row, int64_t k) const {
    return a_.at(offset(a_, batch) + row * a_.row + k * a_.column);
  }
  Matrix<const T> right(int64_t batch, int64_t k, int64_t column) const {
    return b_.at(offset(b_, batch) + k * b_.row + column * b_.column);
  }
  Matrix<T> target(int64_t batch, int64_t row, int64_t column) const {
    return target_.at(offset(target_, batch) + row * target_.row + column * target_.column);
  }

  Tiles in_place_grid() const {
    const int64_t side = m_ * n_ > (1 << 20) ? 512 : 256;
    const bool wide = a_.column != 1, vectors = few_ || n_ == 1;
    const int64_t rows = vectors ? kVectorRows : wide ? kWideRows : side;
    return tiles_of(m_, n_, k_, batches_, rows, wide ? kWideColumns : side, kWidest);
  }
  Tiles panel_grid(int64_t columns, int64_t batches) const {
    return tiles_of(m_, columns, k_, batches, kWideRows, kWideColumns, kWidest);
  }

  void multiply_in_place(const ProductKernels<T>& kernels, int threads) const {
    const bool vectors = few_ || n_ == 1;
    const Tiles grid = in_place_grid();
    const int64_t cost = vectors ? kReading * k_ : k_;
    for_tiles(threads, grid, batches_, n_, cost, [&](int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n) {
      const Matrix<const T> a = left(batch, row, 0), b = right(batch, 0, column);
      const Matrix<T> c = target(batch, row, column);
      const Addend<T> addend = has_addend_ ? addend_at(batch, row, column, m, n, c, few_) : Addend<T>(c, accumulates_);
      if (few_ || n_ == 1 || b.column == 1) {
        kernels.multiply(m, n, k_, a, b, c, addend);
      } else {
        alignas(64) T packed[kStackBytes / kSize];
        copy_tile({reinterpret_cast<char*>(packed), n * kSize, kSize},
                  {reinterpret_cast<char*>(const_cast<T*>(b.data)), b.row * kSize, b.column * kSize}, k_, n, kSize);
        kernels.multiply(m, n, k_, a, {packed, n, 1}, c, addend);
      }
      end_tile(batch, row, m, column, n);
    });
  }

  void multiply_panels(const ProductKernels<T>& kernels, int threads, T* panels) const {
    for (int64_t batch = 0; batch < batches_; batch += group_)
      for (int64_t column = 0; column < n_; column += width_)
        for (int64_t slice = 0; slice < slices_; slice += deep_) {
          const Chunk chunk{batch, std::min(group_, batches_ - batch), column, std::min(width_, n_ - column),
                            slice, std::min(deep_, slices_ - slice)};
          pack_chunk(kernels, threads, chunk, panels);
          multiply_chunk(kernels, threads, chunk, panels);
        }
  }

  // The part of b in panels at a time: some batches, columns and slices of k.
  struct Chunk {
    int64_t batch, batches, column, columns, slice, slices;
  };
  int64_t slice_depth(int64_t slice) const { return std::min(depth_, k_ - slice * depth_); }

  void pack_chunk(const ProductKernels<T>& kernels, int threads, const Chunk& chunk, T* panels) const {
    const int64_t some = 4 * kernels.columns, groups = ceil_div(chunk.columns, some), parts = ceil_div(depth_, kPackedRows);
    const int64_t packs = std::min(packs_, chunk.batches);
    parallel(threads, packs * chunk.slices * groups * parts, [&](int64_t task) {
      const int64_t row = task % parts * kPackedRows, first = task / parts % groups * some, i = task / parts / groups;
      const int64_t batch = chunk.batch + i / chunk.slices, slice = chunk.slice + i % chunk.slices;
      const int64_t rows = std::min(kPackedRows, slice_depth(slice) - row);
      if (rows <= 0) return;  // the last slice is shorter
      kernels.pack(std::min(some, chunk.columns - first), rows, right(batch, slice * depth_ + row, chunk.column + first),
                   panels + i * depth_ * width_ + first * depth_ + row * kernels.columns, depth_ * kernels.columns);
    });
  }

  void multiply_chunk(const ProductKernels<T>& kernels, int threads, const Chunk& chunk, const T* panels) const {
    const Tiles grid = panel_grid(chunk.columns, chunk.batches);
    for_tiles(threads, grid, chunk.batches, chunk.columns, chunk.slices * depth_,
              [&](int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n) {
                const int64_t pack = packs_ == 1 ? 0 : batch;
                const Matrix<T> c = target(chunk.batch + batch, row, chunk.column + column);
                Addend<T> addend(c, accumulates_ || chunk.slice > 0);
                if (has_addend_ && chunk.slice == 0)
                  addend = addend_at(chunk.batch + batch, row, chunk.column + column, m, n, c, false);
                const bool ends = chunk.slice + chunk.slices == slices_;
                for (int64_t i = 0; i < chunk.slices; ++i) {
                  const int64_t slice = chunk.slice + i;
                  const T* first = panels + (pack * chunk.slices + i) * depth_ * width_ + column * depth_;
                  Ahead soon;
                  const bool fetches = following_ && ends && i + 1 == chunk.slices;
                  if (fetches) soon = soon_for(chunk.batch + batch, row, m, chunk.column + column, n);
                  kernels.multiply_panels(m, n, slice_depth(slice), left(chunk.batch + batch, row, slice * depth_),
                                          {first, depth_ * kernels.columns}, c, addend, soon.run ? &soon : nullptr);
                  addend = {c, true};
                }
                if (ends) end_tile(chunk.batch + batch, row, m, chunk.column + column, n);
              });
  }

  void end_tile(int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    if (following_) following_->run(following_->context, batch * m_ + row, rows, column, columns);
  }

  Ahead soon_for(int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    return following_->soon(following_->context, batch * m_ + row, rows, column, columns);
  }

  const Following* following_ = nullptr;
  bool is_turned_ = false;
  bool accumulates_, scratch_ = false, panels_ = false, few_ = false;
  Operand<T> target_;
  int64_t depth_ = 0, slices_ = 0, deep_ = 0;  // of a slice; how many there are; how many are in panels at a time
  int64_t width_ = 0, packs_ = 0, group_ = 0;  // columns, right operands and batches at a time
};

}  // namespace

// --- The right operand in panels, kept by the host: slices of k, panel by panel.

namespace {
constexpr int64_t kMostKeptRows = 256;      // with more rows, packing costs little
constexpr int64_t kHeadElements = 1 << 20;  // a product of so many elements may begin a fusion, which reads the operand

template <class T> struct KeptPanels {
  int64_t n, k, columns;

  int64_t depth() const { return even_part(k, kDepth<T>, 8); }
  int64_t slices() const { return ceil_div(k, depth()); }
  int64_t slice_depth(int64_t slice) const { return std::min(depth(), k - slice * depth()); }
  int64_t width() const { return round_up(n, columns); }
  int64_t elements() const { return slices() * depth() * width(); }
  // The panel of a slice that begins with this column.
  int64_t at(int64_t slice, int64_t column) const { return (slice * width() + column) * depth(); }
};

template <class T> class KeptProduct : Contraction<T> {
 public:
  explicit KeptProduct(const Call& call) : Contraction<T>(call), panels_(data<T>(call.in(1))) { this->fold_batch(); }

  bool pays() const {
    const bool dense = a_.column == 1 && c_.column == 1 && c_.row >= n_;
    return dense && m_ <= kMostKeptRows && m_ * n_ < kHeadElements && n_ * k_ * kSize > kStackBytes &&
           has_whole_strips(grid(), m_);
  }
  KeptPanels<T> panels(int64_t columns) const { return {n_, k_, columns}; }

  void run(const ProductKernels<T>& kernels, int threads) const {
    const KeptPanels<T> kept = panels(kernels.columns);
    this->for_tiles(threads, grid(), 1, n_, k_, [&](int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n) {
      const Matrix<T> c = c_.at(row * c_.row + column);
      Addend<T> addend = has_addend_ ? this->addend_at(batch, row, column, m, n, c, false) : Addend<T>(c, false);
      for (int64_t slice = 0; slice < kept.slices(); ++slice) {
        kernels.multiply_panels(m, n, kept.slice_depth(slice), a_.at(row * a_.row + slice * kept.depth()),
                                {panels_ + kept.at(slice, column), kept.depth() * kept.columns}, c, addend, nullptr);
        addend = {c, true};
      }
    });
  }

 private:
  Tiles grid() const { return tiles_of(m_, n_, k_, 1, kWideRows, kWideColumns, 256 / kSize); }

  using Base = Contraction<T>;
  using Base::a_, Base::c_, Base::m_, Base::n_, Base::k_, Base::has_addend_;
  static constexpr int64_t kSize = sizeof(T);
  const T* panels_;
};
}  // namespace

template <class T> bool gains_from_panels(const Call& call) {
  const plugrad_view& b = call.in(1);
  return b.count == b.shape[b.rank - 1] * b.shape[b.rank - 2] && Product<T>(call).sums_in_order() &&
         KeptProduct<T>(call).pays();
}
template <class T> uint64_t kept_panels_bytes(const Call& call, int64_t columns) {
  return static_cast<uint64_t>(KeptProduct<T>(call).panels(columns).elements()) * sizeof(T);
}
template <class T> void run_kept_product(const Call& call, const ProductKernels<T>& kernels) {
  KeptProduct<T>(call).run(kernels, threads_of(call));
}
template <class T> void keep_panels(const Call& call, const ProductKernels<T>& kernels) {
  const plugrad_view& b = call.in(0);
  const auto step = [&b](int axis) { return b.shape[axis] == 1 ? 0 : b.strides[axis]; };
  const int64_t row = step(b.rank - 2), column = step(b.rank - 1);
  const KeptPanels<T> kept{b.shape[b.rank - 1], b.shape[b.rank - 2], kernels.columns};
  const int64_t some = 4 * kernels.columns, groups = ceil_div(kept.n, some);
  parallel(threads_of(call), kept.slices() * groups, [&](int64_t task) {
    const int64_t slice = task / groups, first = task % groups * some;
    kernels.pack(std::min(some, kept.n - first), kept.slice_depth(slice),
                 {data<T>(b) + slice * kept.depth() * row + first * column, row, column},
                 data<T>(call.out()) + kept.at(slice, first), kept.depth() * kept.columns);
  });
}

template <class T> void run_product(const Call& call, const ProductKernels<T>& kernels) {
  Product<T>(call).run(kernels, threads_of(call), call.op().workspace ? call.workspace() : nullptr);
}
template <class T> bool run_product(const Call& call, const ProductKernels<T>& kernels, const Following& following) {
  Product<T> product(call);
  if (!product.can_be_followed()) return false;
  product.follow(following);
  product.run(kernels, threads_of(call), call.op().workspace ? call.workspace() : nullptr);
  return true;
}
template <class T> uint64_t product_workspace(const Call& call) {
  const plugrad_view &c = call.out(), &b = call.in(1);
  const bool dense = is_dense(c) && is_dense(call.in(0)) && is_dense(b);
  if (dense && c.rank == 2 && b.count * static_cast<int64_t>(sizeof(T)) <= kStackBytes) return 0;  // the usual case, early
  return Product<T>(call).workspace();
}

template void run_product<float>(const Call&, const ProductKernels<float>&);
template void run_product<double>(const Call&, const ProductKernels<double>&);
template bool run_product<float>(const Call&, const ProductKernels<float>&, const Following&);
template bool run_product<double>(const Call&, const ProductKernels<double>&, const Following&);
template bool gains_from_panels<float>(const Call&);
template bool gains_from_panels<double>(const Call&);
template uint64_t kept_panels_bytes<float>(const Call&, int64_t);
template uint64_t kept_panels_bytes<double>(const Call&, int64_t);
template void run_kept_product(const Call&, const ProductKernels<float>&);
template void run_kept_product(const Call&, const ProductKernels<double>&);
template void keep_panels(const Call&, const ProductKernels<float>&);
template void keep_panels(const Call&, const ProductKernels<double>&);
template uint64_t product_workspace<float>(const Call&);
template uint64_t product_workspace<double>(const Call&);

}  // namespace plugrad::cpu
