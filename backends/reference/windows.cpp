// Convolutions and pooling: loops over results and the elements of their windows.
#include <backends/reference/kernels.hpp>
#include <plugrad/sdk/loops/accumulator.hpp>
#include <plugrad/sdk/loops/elements.hpp>

namespace plugrad::reference {
namespace {

// The elements of a tensor (a, b, ..) by two indices and up to three spatial indices.
struct Grid {
  int64_t extents[3]{1, 1, 1}, spatial[3]{};  // of the last axes, and their strides
  int64_t first, second;                      // strides

  Grid(const plugrad_view& view, const Strides& strides) : first(strides[0]), second(strides[1]) {
    for (int i = 2; i < view.rank; ++i) {
      extents[i + 3 - view.rank] = view.shape[i];
      spatial[i + 3 - view.rank] = strides[i];
    }
  }
  int64_t at(int64_t a, int64_t b) const { return a * first + b * second; }
};

// The windows of a call's attributes, along three axes.
struct Windows {
  int64_t size[3]{1, 1, 1}, stride[3]{1, 1, 1}, padding[3]{}, dilation[3]{1, 1, 1};

  template <class A> void take(const A& attributes, int axes) {
    for (int i = 0; i < axes; ++i) {
      stride[3 - axes + i] = attributes.stride[i];
      padding[3 - axes + i] = attributes.padding[i];
      dilation[3 - axes + i] = attributes.dilation[i];
    }
  }

  // Calls body(y, x, k) with three offsets: of each position of y, of each element of x in its window, and of this element
  // within the window.
  template <class Body>
  void each(const Grid& y, const Grid& x, const int64_t (&within)[3], Body body, int axis = 0, int64_t y_at = 0,
            int64_t x_at = 0, int64_t k_at = 0) const {
    if (axis == 3) return body(y_at, x_at, k_at);
    for (int64_t i = 0; i < y.extents[axis]; ++i)
      for (int64_t k = 0; k < size[axis]; ++k) {
        const int64_t from = i * stride[axis] - padding[axis] + k * dilation[axis];
        if (from >= 0 && from < x.extents[axis])
          each(y, x, within, body, axis + 1, y_at + i * y.spatial[axis], x_at + from * x.spatial[axis],
               k_at + k * within[axis]);
      }
  }
};

Strides dense_strides(const plugrad_view& view) {
  Strides strides{};
  int64_t step = 1;
  for (int i = view.rank - 1; i >= 0; step *= view.shape[i--]) strides[i] = step;
  return strides;
}

// Calls body(y, x, weight) with the offsets of the factors of each product, for tensors with these strides.
template <class Body>
void each_product(const plugrad_view& y, const Strides& y_strides, const plugrad_view& x, const Strides& x_strides,
                  const plugrad_view& weight, const Strides& w_strides, const plugrad_convolution& attributes, Body body) {
  const Grid results(y, y_strides), source(x, x_strides), weights(weight, w_strides);
  Windows windows;
  windows.take(attributes, weight.rank - 2);
  std::copy_n(weights.extents, 3, windows.size);
  const int64_t each = weight.shape[0] / attributes.groups;
  for (int64_t n = 0; n < y.shape[0]; ++n)
    for (int64_t o = 0; o < weight.shape[0]; ++o)
      for (int64_t c = 0; c < weight.shape[1]; ++c)
        windows.each(results, source, weights.spatial, [&](int64_t y_at, int64_t x_at, int64_t w_at) {
          body(results.at(n, o) + y_at, source.at(n, o / each * weight.shape[1] + c) + x_at, weights.at(o, c) + w_at);
        });
}

template <class T> using Sums = std::vector<Accumulator<T>>;

template <class T> void store(const Sums<T>& sums, const plugrad_view& view) {
  const Accumulator<T>* next = sums.data();
  for_each(view, [&](T& element) { element = static_cast<T>((next++)->total()); }, Elements<T>(view));
}

template <class T> void convolution(const Call& call) {
  using Term = typename Accumulator<T>::Term;
  const Elements<T> x(call.in(0)), w(call.in(1));
  Sums<T> sums(static_cast<size_t>(call.out().count));
  if (call.op().inputs == 3) {
    const Elements<T> bias(call.in(2));
    const int64_t channels = call.out().shape[1], plane = call.out().count / call.out().shape[0] / channels;
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i].add(bias.first[static_cast<int64_t>(i) / plane % channels * bias.strides[0]]);
  }
  each_product(call.out(), dense_strides(call.out()), call.in(0), x.strides, call.in(1), w.strides,
               call.attributes<plugrad_convolution>(), [&](int64_t y_at, int64_t x_at, int64_t w_at) {
                 sums[static_cast<size_t>(y_at)].add(static_cast<Term>(x.first[x_at]) * static_cast<Term>(w.first[w_at]));
               });
  store(sums, call.out());
}

template <class T> void convolution_input_grad(const Call& call) {
  using Term = typename Accumulator<T>::Term;
  const Elements<T> grad(call.in(0)), w(call.in(1));
  Sums<T> sums(static_cast<size_t>(call.out().count));
  each_product(call.in(0), grad.strides, call.out(), dense_strides(call.out()), call.in(1), w.strides,
               call.attributes<plugrad_convolution>(), [&](int64_t y_at, int64_t x_at, int64_t w_at) {
                 sums[static_cast<size_t>(x_at)].add(static_cast<Term>(grad.first[y_at]) * static_cast<Term>(w.first[w_at]));
               });
  store(sums, call.out());
}

template <class T> void convolution_weight_grad(const Call& call) {
  using Term = typename Accumulator<T>::Term;
  const Elements<T> grad(call.in(0)), x(call.in(1));
  Sums<T> sums(static_cast<size_t>(call.out().count));
  each_product(call.in(0), grad.strides, call.in(1), x.strides, call.out(), dense_strides(call.out()),
               call.attributes<plugrad_convolution>(), [&](int64_t y_at, int64_t x_at, int64_t w_at) {
                 sums[static_cast<size_t>(w_at)].add(static_cast<Term>(grad.first[y_at]) * static_cast<Term>(x.first[x_at]));
               });
  store(sums, call.out());
}

// --- Pooling.

// The best element of a window so far.
struct Best {
  double value = 0;
  int64_t position = -1;
  void take(double x, int64_t at) {
    if (position >= 0 && !(x > value || (x != x && value == value))) return;
    value = x;
    position = at;
  }
};

template <class T> void max_pool(const Call& call) {
  const plugrad_view &shape = call.out(), &in = call.in(0);
  const auto& attributes = call.attributes<plugrad_pool>();
  const Elements<T> values(shape), x(in);
  const Elements<int64_t> indices(call.out(1));
  const Grid results(shape, dense_strides(shape)), source(in, x.strides), flat(in, dense_strides(in));
  Windows windows;
  windows.take(attributes, in.rank - 2);
  for (int i = 2; i < in.rank; ++i) windows.size[i + 3 - in.rank] = attributes.size[i - 2];
  std::vector<Best> best(static_cast<size_t>(shape.count));
  const int64_t plane = shape.count / shape.shape[0] / shape.shape[1];
  for (int64_t i = 0; i < shape.shape[0] * shape.shape[1]; ++i) {
    const T* from = x.first + source.at(i / shape.shape[1], i % shape.shape[1]);
    // The offsets in two sets of strides come from two walks in the same order.
    std::vector<int64_t> positions;
    const int64_t none[3]{};
    windows.each(results, flat, none, [&](int64_t, int64_t at, int64_t) { positions.push_back(at); });
    size_t next = 0;
    windows.each(results, source, none, [&](int64_t to, int64_t at, int64_t) {
      best[static_cast<size_t>(i * plane + to)].take(static_cast<double>(from[at]), positions[next++]);
    });
  }
  int64_t next = 0;
  for_each(
      shape,
      [&](T& value, int64_t& index) {
        const Best& found = best[static_cast<size_t>(next++)];
        value = static_cast<T>(found.value);
        index = found.position;
      },
      values, indices);
}

template <class T> void max_pool_backward(const Call& call) {
  const plugrad_view& out = call.out();
  Sums<T> sums(static_cast<size_t>(out.count));
  const int64_t planes = out.shape[0] * out.shape[1], plane = out.count / planes, each = call.in(0).count / planes;
  int64_t next = 0;
  for_each(
      call.in(0),
      [&](const T& grad, const int64_t& index) {
        if (index < 0 || index >= plane)
          throw BackendError(PLUGRAD_INDEX_ERROR, "[max_pool_backward] index " + std::to_string(index) +
                                                      " is out of range for " + std::to_string(plane) + " elements");
        sums[static_cast<size_t>(next++ / each * plane + index)].add(grad);
      },
      Elements<T>(call.in(0)), Elements<int64_t>(call.in(1)));
  store(sums, out);
}

template <class... T> constexpr auto windows_rows(Types<T...>) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
  return join(
      std::array{kernel<convolution<T>>(PLUGRAD_OP_CONVOLUTION, element_dtype<T>, kMemory)...},
      std::array{kernel<convolution<T>>(PLUGRAD_OP_CONVOLUTION_BIAS, element_dtype<T>, kMemory)...},
      std::array{kernel<convolution_input_grad<T>>(PLUGRAD_OP_CONVOLUTION_INPUT_GRAD, element_dtype<T>, kMemory)...},
      std::array{kernel<convolution_weight_grad<T>>(PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD, element_dtype<T>, kMemory)...},
      std::array{kernel<max_pool<T>>(PLUGRAD_OP_MAX_POOL, element_dtype<T>, kMemory)...},
      std::array{kernel<max_pool_backward<T>>(PLUGRAD_OP_MAX_POOL_BACKWARD, element_dtype<T>, kMemory)...});
}
constexpr auto kWindowsRows = windows_rows(kFloating);

}  // namespace

Rows window_kernels() { return kWindowsRows; }

}  // namespace plugrad::reference
