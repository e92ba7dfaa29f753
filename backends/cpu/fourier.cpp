// Fourier transforms along an axis. Lines side by side become the columns of a panel; a long line is cut.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fourier.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/fourier_fold-inl.hpp>
#include <backends/cpu/fourier_lines-inl.hpp>
#include <backends/cpu/rows.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

template <class Plan> std::shared_ptr<const Plan> plan_of(int64_t n) {
  static PlanCache<Plan> cache;
  return cache.get(n);
}

// What a call of length n needs to know before it chooses its way.
template <class T> struct CutLength : Cut {
  static constexpr int64_t kLanes = Columns<T>::kLanes;
  explicit CutLength(int64_t n) : Cut(n, kLanes), line_cost(smooth ? column_cost(n, kLanes, kLanes) : 0) {}
  int64_t line_cost;  // of a vector of lines that are not cut
};

// A call: transforms of length n. x is (outer, in, inner), y is (outer, out, inner), of complex or real numbers.
template <class T> struct Transforms {
  explicit Transforms(const Call& call) {
    const auto& how = call.attributes<plugrad_fft>();
    const plugrad_view &to = call.out(), &from = call.in(0);
    kind = how.kind;
    scale = static_cast<T>(how.scale);
    x = data<const T>(from);
    y = data<T>(to);
    in = from.shape[how.axis];
    out = to.shape[how.axis];
    n = kind == PLUGRAD_FFT_REAL ? in : out;
    const int last = kind == PLUGRAD_FFT_INVERSE_REAL ? to.rank : to.rank - 1;
    for (int d = 0; d < how.axis; ++d) outer *= to.shape[d];
    for (int d = how.axis + 1; d < last; ++d) inner *= to.shape[d];
    threads = threads_of(call);
    choose();
  }

  uint32_t kind;
  T scale;
  const T* x;
  T* y;
  int64_t n, in, out, outer = 1, inner = 1;
  int threads;
  int64_t length;  // of the transforms of complex numbers
  enum class Way { panels, lines, single } way;

  bool real_in() const { return kind == PLUGRAD_FFT_REAL; }
  bool real_out() const { return kind == PLUGRAD_FFT_INVERSE_REAL; }
  bool is_folded() const { return length != n; }
  bool backward() const { return kind == PLUGRAD_FFT_BACKWARD || real_out(); }
  int64_t lines() const { return outer * inner; }

 private:
  // Panels of so many numbers stay in the first cache.
  static constexpr int64_t kShort = 2048;

  void choose() {
    const bool real = real_in() || real_out();
    const bool folds = real && n % 2 == 0 && plan_of<CutLength<T>>(n / 2)->smooth;
    length = folds ? n / 2 : n;
    const auto cut = plan_of<CutLength<T>>(length);
    way = cut->smooth ? Way::panels : Way::single;
    if (!cut->smooth || inner != 1 || cut->first == 1) return;
    constexpr int64_t kLanes = Columns<T>::kLanes;
    if (length * kLanes > kShort || cut->cost * outer < (outer + kLanes - 1) / kLanes * cut->line_cost)
      way = folds || !real ? Way::lines : Way::single;
  }
};

// --- Panels.

template <class T> class Panels {
 public:
  static constexpr int64_t kLanes = Columns<T>::kLanes, kPair = Columns<T>::kPair;
  explicit Panels(const Transforms<T>& all)
      : all_(all), scale_(all.real_in() && all.is_folded() ? all.scale / 2 : all.scale) {
    if (all.inner == 1) return;
    const int64_t most = (all.inner + kLanes - 1) / kLanes;
    vectors_ = std::clamp<int64_t>(kPanelNumbers / (rows() * kPair), 1, std::min<int64_t>(most, 4));
  }

  int64_t own_numbers() const { return 2 * half(); }
  int64_t tasks() const { return all_.inner == 1 ? (all_.outer + kLanes - 1) / kLanes : all_.outer * groups(); }

  void run(T* workspace) const {
    const auto plan = plan_of<Columns<T>>(all_.length);
    const auto roots = all_.is_folded() ? plan_of<FoldRoots<T>>(all_.n) : nullptr;
    const int64_t slots = std::min<int64_t>(all_.threads, tasks());
    parallel_in_slots(all_.threads, slots, tasks(), [&](int64_t slot, int64_t i) {
      run_one(*plan, roots ? roots->numbers.data() : nullptr, i, workspace + slot * own_numbers());
    });
  }

 private:
  static constexpr int64_t kPanelNumbers = 3 << 15;  // both panels stay in the second cache
  int64_t rows() const { return all_.length + 1; }
  int64_t half() const { return rows() * vectors_ * kPair; }
  int64_t groups() const { return (all_.inner + vectors_ * kLanes - 1) / (vectors_ * kLanes); }

  void run_one(const Columns<T>& plan, const T* roots, int64_t i, T* own) const {
    Block block = block_of(i, own);
    all_.kind == PLUGRAD_FFT_BACKWARD ? load<true>(block) : load<false>(block);
    if (all_.real_out()) roots ? fold_rows(own, all_.length, block.vectors, roots) : mirror_rows(own, all_.n, block.vectors);
    block.panel = const_cast<T*>(plan.run(own, block.vectors, own + half(), own, block.vectors));
    if (all_.real_in() && roots) unfold_rows(block.panel, all_.length, block.vectors, roots);
    all_.backward() ? store<true>(block) : store<false>(block);
  }

  // Columns of the call: lines of adjacent numbers, or numbers side by side.
  struct Block {
    T* panel;
    int64_t columns, vectors, from, to;  // from, to: the first number of the first column in x and y
  };
  Block block_of(int64_t i, T* own) const {
    if (all_.inner == 1) {
      const int64_t first = i * kLanes;
      return {own, std::min(kLanes, all_.outer - first), 1, first * all_.in, first * all_.out};
    }
    const int64_t outer = i / groups(), first = i % groups() * vectors_ * kLanes;
    const int64_t columns = std::min(vectors_ * kLanes, all_.inner - first);
    return {own, columns, (columns + kLanes - 1) / kLanes, outer * all_.in * all_.inner + first,
            outer * all_.out * all_.inner + first};
  }

  template <bool swapped> void load(const Block& block) const {
    const int64_t n = all_.real_in() ? all_.length : all_.in;
    if (all_.real_in() && (all_.inner != 1 || !all_.is_folded())) return load_real(block);
    if (all_.inner != 1)
      return Edges<T, swapped>::load_rows(all_.x + 2 * block.from, all_.inner, n, block.columns, block.panel);
    if (all_.real_in()) Edges<T, swapped>::load_lines(all_.x + block.from, n, n, block.columns, block.panel);
    else Edges<T, swapped>::load_lines(all_.x + 2 * block.from, n, n, block.columns, block.panel);
  }
  template <bool swapped> void store(const Block& block) const {
    const int64_t n = all_.real_out() ? all_.length : all_.out;
    if (all_.real_out() && (all_.inner != 1 || !all_.is_folded())) return store_real(block);
    if (all_.inner != 1)
      return Edges<T, swapped>::store_rows(block.panel, scale_, n, block.columns, all_.y + 2 * block.to, all_.inner);
    T* const to = all_.y + (all_.real_out() ? block.to : 2 * block.to);
    Edges<T, swapped>::store_lines(block.panel, scale_, n, block.columns, to, n);
  }

  // Real numbers one by one: the numbers 2 j and 2 j + 1 of a line are the parts of row j, or number j is its real part.
  void load_real(const Block& block) const {
    const int64_t row = all_.inner, column = all_.inner == 1 ? all_.in : 1, each = all_.is_folded() ? 2 : 1;
    std::fill_n(block.panel, all_.length * block.vectors * kPair, T(0));
    for (int64_t j = 0; j < all_.in; ++j)
      for (int64_t c = 0; c < block.columns; ++c)
        part(block, j / each, c, j % each) = all_.x[block.from + j * row + c * column];
  }
  void store_real(const Block& block) const {
    const int64_t row = all_.inner, column = all_.inner == 1 ? all_.out : 1, each = all_.is_folded() ? 2 : 1;
    for (int64_t j = 0; j < all_.out; ++j)
      for (int64_t c = 0; c < block.columns; ++c)  // the parts are swapped
        all_.y[block.to + j * row + c * column] = scale_ * part(block, j / each, c, 1 - j % each);
  }
  static T& part(const Block& block, int64_t row, int64_t column, int64_t which) {
    return block.panel[(row * block.vectors + column / kLanes) * kPair + which * kLanes + column % kLanes];
  }

  const Transforms<T>& all_;
  T scale_;
  int64_t vectors_ = 1;
};

// --- Lines.

template <class T> class CutLines {
 public:
  explicit CutLines(const Transforms<T>& all) : all_(all), line_(plan_of<Line<T>>(all.length)) {}
  int64_t own_numbers() const {
    return line_->shared_numbers() + line_->own_numbers() * threads_of_line() + (all_.real_out() ? 2 * all_.length : 0);
  }
  int64_t tasks() const { return all_.outer; }

  void run(T* workspace) const {
    const auto roots = all_.is_folded() ? plan_of<FoldRoots<T>>(all_.n) : nullptr;
    const int64_t slots = std::min<int64_t>(all_.threads, tasks());
    parallel_in_slots(tasks() == 1 ? 1 : all_.threads, slots, tasks(), [&](int64_t slot, int64_t i) {
      run_one(roots ? roots->numbers.data() : nullptr, i, workspace + slot * own_numbers());
    });
  }

 private:
  static constexpr int64_t kParallel = 1 << 14;  // a single shorter line stays on one thread
  int threads_of_line() const { return all_.outer == 1 && all_.length >= kParallel ? all_.threads : 1; }

  void run_one(const T* roots, int64_t i, T* shared) const {
    T* const own = shared + line_->shared_numbers();
    T* const folded = own + line_->own_numbers() * threads_of_line();
    const int threads = threads_of_line();
    if (all_.real_in()) {
      T* const y = all_.y + 2 * i * all_.out;
      line_->template run<false>(all_.x + i * all_.in, y, all_.scale / 2, shared, own, threads);
      unfold_line(y, all_.length, roots);
    } else if (all_.real_out()) {
      fold_line(all_.x + 2 * i * all_.in, folded, all_.length, roots);
      line_->template run<true>(folded, all_.y + i * all_.out, all_.scale, shared, own, threads);
    } else {
      const T* const x = all_.x + 2 * i * all_.in;
      T* const y = all_.y + 2 * i * all_.out;
      if (all_.backward()) line_->template run<true>(x, y, all_.scale, shared, own, threads);
      else line_->template run<false>(x, y, all_.scale, shared, own, threads);
    }
  }

  const Transforms<T>& all_;
  std::shared_ptr<const Line<T>> line_;
};

// Lines of any length, one by one through a buffer of complex numbers.
template <class T> class SingleLines {
 public:
  explicit SingleLines(const Transforms<T>& all) : all_(all) {
    if (is_smooth(all.n)) line_ = plan_of<Line<T>>(all.n);
    else chirp_ = plan_of<Chirp<T>>(all.n);
  }
  int64_t own_numbers() const {
    return 2 * all_.n + (line_ ? line_->shared_numbers() + line_->own_numbers() : chirp_->own_numbers());
  }
  int64_t tasks() const { return all_.lines(); }

  void run(T* workspace) const {
    const int64_t slots = std::min<int64_t>(all_.threads, tasks());
    parallel_in_slots(all_.threads, slots, tasks(), [&](int64_t slot, int64_t i) {
      T* const line = workspace + slot * own_numbers();
      T* const own = line + 2 * all_.n;
      gather(i, line);
      if (chirp_) chirp_->run(line, own);
      else line_->template run<false>(line, line, T(1), own, own + line_->shared_numbers(), 1);
      scatter(i, line);
    });
  }

 private:
  // The parts are swapped for a backward transform.
  void gather(int64_t i, T* line) const {
    const T* const x = all_.x + (i / all_.inner * all_.in * all_.inner + i % all_.inner) * (all_.real_in() ? 1 : 2);
    const int real = all_.backward() ? 1 : 0;
    for (int64_t j = 0; j < all_.in; ++j) {
      const T* const from = x + j * all_.inner * (all_.real_in() ? 1 : 2);
      line[2 * j + real] = from[0];
      line[2 * j + 1 - real] = all_.real_in() ? T(0) : from[1];
    }
    if (!all_.real_out()) return;
    line[0] = 0;
    for (int64_t j = all_.in - (all_.n % 2 ? 0 : 1); j < all_.n; ++j) {
      const int64_t k = all_.n - j;
      line[2 * j + 1] = line[2 * k + 1];
      line[2 * j] = 2 * k == all_.n ? T(0) : -line[2 * k];
    }
  }
  void scatter(int64_t i, const T* line) const {
    T* const y = all_.y + (i / all_.inner * all_.out * all_.inner + i % all_.inner) * (all_.real_out() ? 1 : 2);
    const int real = all_.backward() ? 1 : 0;
    for (int64_t j = 0; j < all_.out; ++j) {
      T* const to = y + j * all_.inner * (all_.real_out() ? 1 : 2);
      to[0] = all_.scale * line[2 * j + real];
      if (!all_.real_out()) to[1] = all_.scale * line[2 * j + 1 - real];
    }
  }

  const Transforms<T>& all_;
  std::shared_ptr<const Line<T>> line_;
  std::shared_ptr<const Chirp<T>> chirp_;
};

// Calls f with the work of the call.
template <class T, class F> auto with_way(const Transforms<T>& all, F f) {
  switch (all.way) {
    case Transforms<T>::Way::panels: return f(Panels<T>(all));
    case Transforms<T>::Way::lines: return f(CutLines<T>(all));
    default: return f(SingleLines<T>(all));
  }
}

template <class T> uint64_t fourier_workspace(const Call& call) {
  const Transforms<T> all(call);
  return with_way(all, [&](const auto& work) {
    const int64_t slots = std::min<int64_t>(all.threads, work.tasks());
    return static_cast<uint64_t>(slots * work.own_numbers()) * sizeof(T);
  });
}

template <class T> void fourier(const Call& call) {
  const Transforms<T> all(call);
  with_way(all, [&](const auto& work) { work.run(reinterpret_cast<T*>(call.workspace())); });
}

template <class T> void append_row(RowList& rows) {
  constexpr uint16_t kLayouts = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;  // other operands are copied first
  rows.push_back(with_workspace<fourier_workspace<T>>(kernel<fourier<T>>(PLUGRAD_OP_FFT, kDtype<T>, kLayouts)));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE

namespace plugrad::cpu {
template <> void append_fourier<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append_row<float>(rows);
  HWY_NAMESPACE::append_row<double>(rows);
}
}  // namespace plugrad::cpu
HWY_AFTER_NAMESPACE();
