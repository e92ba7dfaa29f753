// Batch normalisation of (n, c): rows of features, one element of each channel in a row. Included once for each instruction
// set, after norm-inl.hpp.
#if defined(PLUGRAD_CPU_FEATURES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_FEATURES_INL
#undef PLUGRAD_CPU_FEATURES_INL
#else
#define PLUGRAD_CPU_FEATURES_INL
#endif

#include <backends/cpu/norm-inl.hpp>
#include <backends/cpu/streaming.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

template <class T> struct Features {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t kRows = 32, kChunks = 32;  // rows summed in T at once; the most tasks

  int64_t n, c;
  explicit Features(const plugrad_view& x) : n(x.shape[0]), c(x.shape[1]) {}

  // Tasks of whole blocks of rows; their number does not depend on the number of threads.
  int64_t each() const { return std::max((n + kChunks - 1) / kChunks, kRows) / kRows * kRows + kRows; }
  int64_t chunks() const { return (n + each() - 1) / each(); }
  // For each chunk two numbers per channel, then four of T.
  uint64_t workspace() const { return static_cast<uint64_t>(c) * (static_cast<uint64_t>(chunks()) * 16 + 4 * sizeof(T)); }
  double* partials(char* workspace, int64_t chunk) const { return reinterpret_cast<double*>(workspace) + chunk * 2 * c; }
  T* factors(char* workspace) const { return reinterpret_cast<T*>(partials(workspace, chunks())); }

  template <class F> void each_block(int64_t chunk, F f) const {
    for (int64_t i = chunk * each(); i < std::min(n, (chunk + 1) * each()); i += kRows)
      f(i, std::min({kRows, n - i, (chunk + 1) * each() - i}));
  }
  // Calls f(j, d) for vectors of channels, then f(j, d) with vectors of one lane for the rest.
  template <class F> void each_column(F f) const {
    const D d;
    const hn::CappedTag<T, 1> one;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (; j + lanes <= c; j += lanes) f(j, d);
    for (; j < c; ++j) f(j, one);
  }

  // Adds a block's moments to those of `before` rows: after Chan, Golub and LeVeque, as Moments in norm-inl.hpp.
  void add_block(const T* x, int64_t before, int64_t rows, double* mean, double* squares) const {
    const double size = static_cast<double>(rows), count = static_cast<double>(before), all = count + size;
    each_column([&](int64_t j, auto d) HWY_ATTR {
      auto sum = hn::Zero(d), apart = sum, square = sum;
      for (int64_t i = 0; i < rows; ++i) sum = hn::Add(sum, hn::LoadU(d, x + i * c + j));
      const auto centre = hn::Mul(sum, hn::Set(d, static_cast<T>(1 / size)));
      for (int64_t i = 0; i < rows; ++i) {
        const auto v = hn::Sub(hn::LoadU(d, x + i * c + j), centre);
        apart = hn::Add(apart, v);
        square = hn::MulAdd(v, v, square);
      }
      HWY_ALIGN T centres[HWY_MAX_BYTES / sizeof(T)], aparts[HWY_MAX_BYTES / sizeof(T)], sums[HWY_MAX_BYTES / sizeof(T)];
      hn::Store(centre, d, centres);
      hn::Store(apart, d, aparts);
      hn::Store(square, d, sums);
      for (int64_t k = 0; k < static_cast<int64_t>(hn::Lanes(d)); ++k) {
        const double rest = static_cast<double>(aparts[k]), average = static_cast<double>(centres[k]) + rest / size;
        const double moved = average - mean[j + k];
        squares[j + k] += static_cast<double>(sums[k]) - rest * rest / size + moved * moved * (count * size / all);
        mean[j + k] += moved * (size / all);
      }
    });
  }
  static void merge(double count, double size, double* mean, double* squares, const double* other_mean,
                    const double* other_squares, int64_t n) {
    const double all = count + size;
    for (int64_t j = 0; j < n; ++j) {
      const double moved = other_mean[j] - mean[j];
      squares[j] += other_squares[j] + moved * moved * (count * size / all);
      mean[j] += moved * (size / all);
    }
  }

  void forward(const Call& call, double epsilon) const {
    const T* x = data<T>(call.in(0));
    parallel_pass(threads_of(call), chunks(), n * c * int64_t{sizeof(T)}, [&](int64_t chunk) {
      double* const mean = partials(call.workspace(), chunk);
      std::fill_n(mean, 2 * c, 0.0);
      each_block(chunk, [&](int64_t i, int64_t rows) { add_block(x + i * c, i - chunk * each(), rows, mean, mean + c); });
    });
    double* const mean = partials(call.workspace(), 0);
    for (int64_t chunk = 1; chunk < chunks(); ++chunk) {
      const double* const other = partials(call.workspace(), chunk);
      const int64_t before = chunk * each();
      merge(static_cast<double>(before), static_cast<double>(std::min(each(), n - before)), mean, mean + c, other, other + c,
            c);
    }
    for (int64_t j = 0; j < c; ++j) {
      data<T>(call.out(1))[j] = static_cast<T>(mean[j]);
      data<T>(call.out(2))[j] = static_cast<T>(mean[c + j] / static_cast<double>(n));
    }
    normalise(call, mean, epsilon);
  }
  void normalise(const Call& call, const double* mean, double epsilon) const {
    T *const centre = factors(call.workspace()), *const rest = centre + c, *const factor = rest + c;
    for (int64_t j = 0; j < c; ++j) {
      const Scaling<T> s(mean[j], mean[c + j] / static_cast<double>(n), epsilon);
      centre[j] = s.mean;
      rest[j] = s.rest;
      factor[j] = s.scale * data<T>(call.in(1))[j];
    }
    const T *x = data<T>(call.in(0)), *bias = data<T>(call.in(2));
    parallel_pass(threads_of(call), chunks(), n * c * int64_t{sizeof(T)}, [&](int64_t chunk) {
      for (int64_t i = chunk * each(); i < std::min(n, (chunk + 1) * each()); ++i)
        each_column([&](int64_t j, auto d) HWY_ATTR {
          const auto apart = hn::Sub(hn::Sub(hn::LoadU(d, x + i * c + j), hn::LoadU(d, centre + j)), hn::LoadU(d, rest + j));
          hn::StoreU(hn::MulAdd(apart, hn::LoadU(d, factor + j), hn::LoadU(d, bias + j)), d,
                     data<T>(call.out()) + i * c + j);
        });
    });
  }

  // Adds a block's sums of grad, and of grad times the normalised x.
  void add_sums(const T* grad, const T* x, const T* centre, const T* scale, int64_t rows, double* grads,
                double* products) const {
    each_column([&](int64_t j, auto d) HWY_ATTR {
      const auto m = hn::LoadU(d, centre + j), s = hn::LoadU(d, scale + j);
      auto sum = hn::Zero(d), product = sum;
      for (int64_t i = 0; i < rows; ++i) {
        const auto g = hn::LoadU(d, grad + i * c + j);
        sum = hn::Add(sum, g);
        product = hn::MulAdd(g, hn::Mul(hn::Sub(hn::LoadU(d, x + i * c + j), m), s), product);
      }
      HWY_ALIGN T sums[HWY_MAX_BYTES / sizeof(T)], all[HWY_MAX_BYTES / sizeof(T)];
      hn::Store(sum, d, sums);
      hn::Store(product, d, all);
      for (int64_t k = 0; k < static_cast<int64_t>(hn::Lanes(d)); ++k) {
        grads[j + k] += static_cast<double>(sums[k]);
        products[j + k] += static_cast<double>(all[k]);
      }
    });
  }
  void backward(const Call& call, double epsilon) const {
    const T *grad = data<T>(call.in(0)), *x = data<T>(call.in(1)), *mean = data<T>(call.in(3)),
            *variance = data<T>(call.in(4));
    T* const scale = factors(call.workspace());
    for (int64_t j = 0; j < c; ++j)
      scale[j] = Scaling<T>(static_cast<double>(mean[j]), static_cast<double>(variance[j]), epsilon).scale;
    parallel_pass(threads_of(call), chunks(), n * c * int64_t{sizeof(T)}, [&](int64_t chunk) {
      double* const sums = partials(call.workspace(), chunk);
      std::fill_n(sums, 2 * c, 0.0);
      each_block(chunk,
                 [&](int64_t i, int64_t rows) { add_sums(grad + i * c, x + i * c, mean, scale, rows, sums, sums + c); });
    });
    double* const sums = partials(call.workspace(), 0);
    for (int64_t chunk = 1; chunk < chunks(); ++chunk)
      for (int64_t j = 0; j < 2 * c; ++j) sums[j] += partials(call.workspace(), chunk)[j];
    for (int64_t j = 0; j < c; ++j) {
      data<T>(call.out(1))[j] = static_cast<T>(sums[c + j]);
      data<T>(call.out(2))[j] = static_cast<T>(sums[j]);
    }
    input_gradient(call, sums);
  }
  void input_gradient(const Call& call, const double* sums) const {
    T *const scale = factors(call.workspace()), *const constant = scale + c, *const along = constant + c,
             *const factor = along + c;
    for (int64_t j = 0; j < c; ++j) {
      constant[j] = static_cast<T>(sums[j] / static_cast<double>(n));
      along[j] = static_cast<T>(sums[c + j] / static_cast<double>(n));
      factor[j] = scale[j] * data<T>(call.in(2))[j];
    }
    const T *grad = data<T>(call.in(0)), *x = data<T>(call.in(1)), *mean = data<T>(call.in(3));
    parallel_pass(threads_of(call), chunks(), n * c * int64_t{sizeof(T)}, [&](int64_t chunk) {
      for (int64_t i = chunk * each(); i < std::min(n, (chunk + 1) * each()); ++i)
        each_column([&](int64_t j, auto d) HWY_ATTR {
          const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, x + i * c + j), hn::LoadU(d, mean + j)), hn::LoadU(d, scale + j));
          const auto rest = hn::Sub(hn::LoadU(d, grad + i * c + j), hn::LoadU(d, constant + j));
          hn::StoreU(hn::Mul(hn::LoadU(d, factor + j), hn::NegMulAdd(normal, hn::LoadU(d, along + j), rest)), d,
                     data<T>(call.out()) + i * c + j);
        });
    });
  }
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
