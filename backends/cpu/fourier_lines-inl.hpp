// Fourier transforms of a line of adjacent numbers. A line of n = first x second numbers is a matrix whose columns are
// transformed, multiplied by roots of unity, and transposed, and whose columns are transformed again (Bailey, "FFTs in
// external or hierarchical memory", 1990). A length with a large prime factor becomes a convolution with a chirp
// (Bluestein, 1970). Included once for each instruction set.
#if defined(PLUGRAD_CPU_FOURIER_LINES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_FOURIER_LINES_INL
#undef PLUGRAD_CPU_FOURIER_LINES_INL
#else
#define PLUGRAD_CPU_FOURIER_LINES_INL
#endif

#include <backends/cpu/fourier_edges-inl.hpp>
#include <backends/cpu/pool.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

template <class T> class Line {
 public:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using C = Complexes<D>;
  static constexpr int64_t kLanes = Columns<T>::kLanes, kPair = Columns<T>::kPair;

  explicit Line(int64_t n)
      : first_(Cut(n, kLanes).first), second_(n / first_), across_(vectors(second_)), down_(vectors(first_)),
        columns_(first_), rows_(second_) {
    if (first_ == 1) return;
    for (int64_t k = 0; k < first_; ++k)
      for (int64_t j = 0; j < kLanes; ++j) append(steps_, k, j, n, j == 0, kLanes);
    for (int64_t block = 0; block < across_; ++block)
      for (int64_t k = 0; k < first_; ++k) append(starts_, k * block, kLanes, n, true, 1);
  }

  bool is_cut() const { return first_ > 1; }
  // Numbers of memory for run: once, and for each of its threads.
  int64_t shared_numbers() const { return second_ * down_ * kPair; }
  int64_t own_numbers() const { return 2 * panel_numbers(); }

  // y = scale times the transform of x; `own` has the memory of each thread. x may be y.
  template <bool swapped> void run(const T* x, T* y, T scale, T* shared, T* own, int threads) const {
    const int64_t columns = group(first_, across_), rows = group(second_, down_);
    parallel_in_slots(threads, std::min<int64_t>(threads, across_), (across_ + columns - 1) / columns,
                      [&](int64_t slot, int64_t i) {
                        columns_step<swapped>(x, i * columns, std::min(columns, across_ - i * columns), shared,
                                              own + slot * own_numbers());
                      });
    parallel_in_slots(threads, std::min<int64_t>(threads, down_), (down_ + rows - 1) / rows, [&](int64_t slot, int64_t i) {
      rows_step<swapped>(shared, i * rows, std::min(rows, down_ - i * rows), scale, y, own + slot * own_numbers());
    });
  }

 private:
  static constexpr int64_t kPanelNumbers = 4096;  // a panel of a group of vectors stays in the first cache
  static int64_t vectors(int64_t n) { return (n + kLanes - 1) / kLanes; }
  static int64_t group(int64_t n, int64_t most) { return std::clamp<int64_t>(kPanelNumbers / (n * kPair), 1, most); }
  int64_t panel_numbers() const {
    return std::max(down_ * kLanes * group(first_, across_), second_ * group(second_, down_)) * kPair;
  }

  void append(std::vector<T>& to, int64_t k, int64_t j, int64_t n, bool begins, int64_t lanes) {
    const std::complex<double> root = root_of_unity(k * j % n, n);
    if (begins) to.resize(to.size() + static_cast<size_t>(2 * lanes));
    T* const at = to.data() + to.size() - 2 * lanes + (lanes == 1 ? 0 : j);
    at[0] = static_cast<T>(root.real());
    at[lanes] = static_cast<T>(root.imag());
  }

  // Transforms a group of vectors of columns, and writes them transposed to `shared` (second, down vectors).
  template <bool swapped> void columns_step(const T* x, int64_t group, int64_t many, T* shared, T* own) const {
    const int64_t columns = std::min(many * kLanes, second_ - group * kLanes);
    T* const other = own + panel_numbers();
    Edges<T, swapped>::load_rows(x + 2 * group * kLanes, second_, first_, columns, own);
    const T* const panel = columns_.run(own, many, other, own, many);
    for (int64_t v = 0; v < many; ++v)
      for (int64_t k = 0; k < down_; ++k) turn_tile(panel + v * kPair, many * kPair, group + v, k, shared);
  }
  // The tile of vector `block` of the columns and rows from k vectors on.
  void turn_tile(const T* panel, int64_t step, int64_t block, int64_t k, T* shared) const {
    C tile[kLanes];
    const T* const starts = starts_.data() + 2 * block * first_;
    const int64_t from = k * kLanes, some = std::min(kLanes, first_ - from);
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t row = std::min(from + i, first_ - 1);
      const C root = times(Columns<T>::load(steps_.data() + row * kPair), Columns<T>::number(starts + 2 * row));
      tile[i] = i < some ? times(Columns<T>::load(panel + row * step), root) : C{hn::Zero(D()), hn::Zero(D())};
    }
    Edges<T, false>::transpose(tile);
    const int64_t to = block * kLanes, places = std::min(kLanes, second_ - to);
    for (int64_t i = 0; i < places; ++i) Columns<T>::store(tile[i], shared + ((to + i) * down_ + k) * kPair);
  }

  template <bool swapped> void rows_step(const T* shared, int64_t group, int64_t many, T scale, T* y, T* own) const {
    const int64_t columns = std::min(many * kLanes, first_ - group * kLanes);
    const T* const panel = rows_.run(shared + group * kPair, down_, own, own + panel_numbers(), many);
    Edges<T, swapped>::store_rows(panel, scale, second_, columns, y + 2 * group * kLanes, first_);
  }

  int64_t first_, second_, across_, down_;  // the factors, and vectors of a row of `second` and of `first` numbers
  Columns<T> columns_, rows_;
  std::vector<T> steps_, starts_;  // roots: number k block lanes + j of `n` is starts[block, k] steps[k, j]
};

// A line of any length n. It is cut if it can be.
template <class T> class Chirp {
 public:
  explicit Chirp(int64_t n) : n_(n), length_(padded_length(2 * n - 1)), line_(length_) {
    chirp_.resize(static_cast<size_t>(2 * n));
    spectrum_.resize(static_cast<size_t>(2 * length_));
    std::vector<T> filter(static_cast<size_t>(2 * length_));
    for (int64_t j = 0, square = 0; j < n; square = (square + 2 * j + 1) % (2 * n), ++j) {
      const std::complex<double> root = root_of_unity(square, 2 * n);  // e^(-pi i j^2 / n)
      set(chirp_, j, root);
      set(filter, j, std::conj(root));
      if (j) set(filter, length_ - j, std::conj(root));
    }
    std::vector<T> memory(static_cast<size_t>(line_.shared_numbers() + line_.own_numbers()));
    line_.template run<false>(filter.data(), spectrum_.data(), T(1) / static_cast<T>(length_), memory.data(),
                              memory.data() + line_.shared_numbers(), 1);
  }

  int64_t own_numbers() const { return 2 * length_ + line_.shared_numbers() + line_.own_numbers(); }

  // Transforms x in place; x holds n complex numbers.
  void run(T* x, T* own) const {
    T* const padded = own;
    T* const shared = own + 2 * length_;
    multiply(x, chirp_.data(), n_, padded);
    std::fill(padded + 2 * n_, padded + 2 * length_, T(0));
    line_.template run<false>(padded, padded, T(1), shared, shared + line_.shared_numbers(), 1);
    multiply(padded, spectrum_.data(), length_, padded);
    line_.template run<true>(padded, padded, T(1), shared, shared + line_.shared_numbers(), 1);
    multiply(padded, chirp_.data(), n_, x);
  }

 private:
  static void set(std::vector<T>& to, int64_t j, std::complex<double> x) {
    to[static_cast<size_t>(2 * j)] = static_cast<T>(x.real());
    to[static_cast<size_t>(2 * j + 1)] = static_cast<T>(x.imag());
  }
  static void multiply(const T* a, const T* b, int64_t n, T* out) {
    using Whole = Edges<T, false>;
    for (int64_t i = 0; i < n; i += Whole::kLanes) {
      const int64_t some = n - i;
      Whole::store(times(Whole::load(a + 2 * i, some), Whole::load(b + 2 * i, some)), out + 2 * i, some);
    }
  }

  int64_t n_, length_;
  Line<T> line_;
  std::vector<T> chirp_, spectrum_;
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
