#include <backends/cpu/bf16_product.hpp>

#include <backends/cpu/contraction.hpp>
#include <backends/cpu/product.hpp>
#include <backends/cpu/rows.hpp>

#include <hwy/highway.h>

#include <algorithm>

namespace plugrad::cpu {
namespace {

constexpr int64_t kPanelElements = 1 << 19;  // the most elements of the right operand packed at a time
constexpr int64_t kMostDepth = 1536;         // of a slice of k; more is summed in memory, slice by slice

// The tiles' registers of the calling thread, for the time of some products.
class Session {
 public:
  explicit Session(const Bf16Kernels& kernels) : kernels_(kernels) { kernels_.begin(state_); }
  ~Session() { kernels_.end(state_); }
  Session(const Session&) = delete;

 private:
  const Bf16Kernels& kernels_;
  char state_[64];
};

class Bf16Product : Contraction<BFloat16> {
 public:
  explicit Bf16Product(const Call& call) : Contraction(call), adds_(call.accumulates() || has_addend_) {
    fold_batch();
    if (is_better_transposed()) {
      transpose();
      fold_batch();
    }
    depth_ = even_part(k_, kMostDepth, kTileDepth);
    slices_ = ceil_div(k_, depth_);
    width_ = even_part(n_, kPanelElements / depth_ / kBlock * kBlock, kBlock);
    const bool whole = width_ >= n_ && slices_ == 1;
    packs_ = !whole || is_shared(b_) ? 1 : std::clamp<int64_t>(kPanelElements / (depth_ * width_), 1, batches_);
    group_ = whole && is_shared(b_) ? batches_ : packs_;
  }

  uint64_t workspace() const {
    const int64_t sums = slices_ > 1 ? round_up(m_, kBlock) * width_ : 0;
    return static_cast<uint64_t>(panel_elements()) * sizeof(BFloat16) + static_cast<uint64_t>(sums) * sizeof(float);
  }

  void run(const Bf16Kernels& kernels, int threads, char* workspace) const {
    auto* panels = reinterpret_cast<BFloat16*>(workspace);
    auto* sums = reinterpret_cast<float*>(panels + panel_elements());
    for (int64_t batch = 0; batch < batches_; batch += group_)
      for (int64_t column = 0; column < n_; column += width_)
        for (int64_t slice = 0; slice < slices_; ++slice) {
          const Chunk chunk{batch,          std::min(group_, batches_ - batch),   column, std::min(width_, n_ - column),
                            slice * depth_, std::min(depth_, k_ - slice * depth_)};
          pack_chunk(kernels, threads, chunk, panels);
          multiply_chunk(kernels, threads, chunk, panels, sums);
        }
  }

 private:
  // The part of b packed at a time: some batches, columns and a slice of k.
  struct Chunk {
    int64_t batch, batches, column, columns, k, depth;
  };

  // The left operand is read in place if its elements along k are neighbours; the right operand is always packed. The
  // estimate compares the cost of packing with the cost of transposing the sums.
  bool is_better_transposed() const {
    const bool left = a_.column == 1, right = b_.row == 1;
    if (left != right) return right && n_ > kTile;
    return left ? n_ > m_ && (n_ - m_) * k_ > 2 * m_ * n_ : c_.column != 1 && c_.row == 1;
  }

  int64_t panel_elements() const { return packs_ * depth_ * width_; }

  void pack_chunk(const Bf16Kernels& kernels, int threads, const Chunk& chunk, BFloat16* panels) const {
    constexpr int64_t kSome = 8 * kTile;
    const int64_t groups = ceil_div(chunk.columns, kSome), packs = std::min(packs_, chunk.batches);
    parallel(threads, packs * groups, [&](int64_t task) {
      const int64_t pack = task / groups, first = task % groups * kSome;
      const Matrix<const BFloat16> b = b_.at(offset(b_, chunk.batch + pack) + chunk.k * b_.row);
      for (int64_t j = first; j < std::min(first + kSome, chunk.columns); j += kTile)
        kernels.pack_right(std::min(kTile, chunk.columns - j), chunk.depth,
                           {b.data + (chunk.column + j) * b.column, b.column, b.row},
                           panels + pack * depth_ * width_ + j * depth_);
    });
  }

  void multiply_chunk(const Bf16Kernels& kernels, int threads, const Chunk& chunk, const BFloat16* panels,
                      float* sums) const {
    Tiles grid = tiles_of(m_, chunk.columns, chunk.depth, chunk.batches, 512, 512, kBlock);
    grid.rows = round_up(grid.rows, kBlock);
    grid.down = ceil_div(m_, grid.rows);
    for_tiles(threads, grid, chunk.batches, chunk.columns, chunk.depth,
              [&](int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n) {
                const Session session(kernels);
                const Matrix<BFloat16> c =
                    c_.at(offset(c_, chunk.batch + batch) + row * c_.row + (chunk.column + column) * c_.column);
                if (has_addend_ && chunk.k == 0) copy_addend(chunk.batch + batch, row, chunk.column + column, m, n, c);
                const BFloat16* b = panels + (packs_ == 1 ? 0 : batch) * depth_ * width_ + column * depth_;
                for (int64_t r = 0; r < m; r += kBlock)
                  multiply_strip(kernels, chunk, chunk.batch + batch, row + r, std::min(kBlock, m - r), column, n, b,
                                 slices_ > 1 ? sums + (row + r) * width_ + column : nullptr);
              });
  }

  // Rows of a tile of the output; `sums` keeps their sums between slices.
  void multiply_strip(const Bf16Kernels& kernels, const Chunk& chunk, int64_t batch, int64_t row, int64_t rows,
                      int64_t column, int64_t columns, const BFloat16* b, float* sums) const {
    alignas(64) BFloat16 packed[kBlock * kMostDepth];
    alignas(64) float blocks[2][kBlock * kBlock];
    const Matrix<const BFloat16> first = a_.at(offset(a_, batch) + row * a_.row + chunk.k * a_.column);
    const LeftTiles a = left(kernels, first, rows, chunk.depth, packed);
    const Matrix<BFloat16> out = c_.at(offset(c_, batch) + row * c_.row + (chunk.column + column) * c_.column);
    const bool last = chunk.k + chunk.depth == k_;
    const int64_t steps = ceil_div(chunk.depth, kTileDepth);
    const auto block = [&](int64_t j) {
      return sums ? SumBlock{sums + j, width_} : SumBlock{blocks[j / kBlock % 2], kBlock};
    };
    const auto round = [&](int64_t j) {
      const Matrix<BFloat16> to{out.data + j * out.column, out.row, out.column};
      if (last) kernels.round(rows, std::min(kBlock, columns - j), block(j), to, adds_);
    };
    for (int64_t j = 0; j < columns; j += kBlock) {  // rounds a block while the processor still multiplies the next block
      const int64_t some = std::min(kBlock, columns - j);
      const Lines ahead{out.data + j * out.column, out.row, last && out.column == 1 ? ceil_div(rows, steps) : 0};
      kernels.multiply[rows > kTile][some > kTile](steps, a, b + j * depth_, depth_ * kTile, block(j), chunk.k > 0, ahead);
      if (j > 0) round(j - kBlock);
    }
    round((columns - 1) / kBlock * kBlock);
  }

  // Packs also rows that a cache would map to a single set.
  static LeftTiles left(const Bf16Kernels& kernels, Matrix<const BFloat16> a, int64_t rows, int64_t k, BFloat16* packed) {
    const bool whole = rows % kTile == 0 && k % kTileDepth == 0;
    if (whole && a.column == 1 && a.row % 2048 != 0) return {a.data, a.row, kTileDepth, kTile * a.row};
    const int64_t tile = round_up(k, kTileDepth) * kTile;
    for (int64_t r = 0; r < rows; r += kTile)
      kernels.pack_left(std::min(kTile, rows - r), k, {a.data + r * a.row, a.row, a.column}, packed + r / kTile * tile);
    return {packed, kTileDepth, kTileSize, tile};
  }

  bool adds_;                      // to the output
  int64_t depth_, slices_;         // of a slice of k; how many there are
  int64_t width_, packs_, group_;  // columns, right operands and batches at a time
};

template <class Product> void append(RowList& rows) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
  constexpr uint32_t kFlags = kPlainFlags | PLUGRAD_ACCUMULATE;
  constexpr auto workspace = Product::workspace;
  rows.push_back(with_workspace<workspace>(kernel<Product::multiply>(PLUGRAD_OP_MATMUL, PLUGRAD_BF16, kMemory, kFlags)));
  rows.push_back(with_workspace<workspace>(kernel<Product::multiply>(PLUGRAD_OP_MATMUL_ADD, PLUGRAD_BF16, kMemory)));
}

struct TileProduct {
  static uint64_t workspace(const Call& call) { return Bf16Product(call).workspace(); }
  static void multiply(const Call& call) { Bf16Product(call).run(*tile_kernels(), threads_of(call), call.workspace()); }
};

#if defined(__x86_64__)
// A block of 16 x 16 sums for a few vectors would mostly compute unused results.
struct PairProduct {
  static const FewVectors& few() { return few_vectors<HWY_AVX3, BFloat16>(); }
  static uint64_t workspace(const Call& call) {
    return few().serves(call) ? few().workspace(call) : Bf16Product(call).workspace();
  }
  static void multiply(const Call& call) {
    if (few().serves(call)) few().multiply(call);
    else Bf16Product(call).run(*pair_kernels(), threads_of(call), call.workspace());
  }
};
#endif

}  // namespace

void append_tile_products(RowList& rows) { append<TileProduct>(rows); }
#if defined(__x86_64__)
void append_pair_products(RowList& rows) { append<PairProduct>(rows); }
#endif

}  // namespace plugrad::cpu
