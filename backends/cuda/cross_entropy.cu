#include <backends/cuda/softmax.hpp>

#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

template <class T> struct Forward {
  int64_t rows, classes;
  Team team;
  const T* x;
  T *loss, *lse;
  const int64_t* target;
  int64_t x_row, x_column, loss_row, lse_row, target_row;  // strides
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_kernel(const __grid_constant__ Forward<T> f, const IndexReport report) {
  __shared__ Exponentials<T> shared[kBlock];
  for (int64_t first = int64_t(blockIdx.x) * f.team.teams(); first < f.rows; first += int64_t(gridDim.x) * f.team.teams()) {
    const int64_t row = first + f.team.team();
    const T* line = row < f.rows ? f.x + row * f.x_row : nullptr;
    const Exponentials<T> e = exponentials(f.team, line, f.classes, f.x_column, shared);
    if (!line || f.team.member() != 0) continue;
    const int64_t target = f.target[row * f.target_row];
    const T lse = e.largest + std::log(e.sum);
    f.lse[row * f.lse_row] = lse;
    if (target < 0 || target >= f.classes)
      report();
    else
      f.loss[row * f.loss_row] = lse - line[target * f.x_column];
  }
}

template <class T> struct Backward {
  Walk<4> walk;  // of out, x; and as if they were operands too, of the row's number and the column's
  T* out;
  Input<T> grad, x, lse;
  Input<int64_t> target;
  int64_t classes, grad_row, lse_row, target_row;
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_backward_kernel(const __grid_constant__ Backward<T> b, const IndexReport report) {
  const uint64_t threads = uint64_t(gridDim.x) * kBlock;
  for (uint64_t i = uint64_t(blockIdx.x) * kBlock + threadIdx.x; i < b.walk.count; i += threads) {
    const Reach<4> reach = b.walk.reach(i);
    const int64_t row = reach.at[2], column = reach.at[3], target = b.target.at(row * b.target_row);
    if (target < 0 || target >= b.classes) report();
    const T probability = std::exp(b.x.at(reach.at[1]) - b.lse.at(row * b.lse_row));
    b.out[reach.at[0]] = b.grad.at(row * b.grad_row) * (probability - (column == target ? T(1) : T(0)));
  }
}

int64_t stride(const plugrad_view& view, int axis) { return is_immediate(view) ? 0 : stride_of(view, axis); }

template <class T> void forward(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const plugrad_view& x = call.in(0);
  Forward<T> f{x.shape[0],
               x.shape[1],
               {},
               data<const T>(x),
               data<T>(call.out(0)),
               data<T>(call.out(1)),
               data<const int64_t>(call.in(1)),
               stride(x, 0),
               stride(x, 1),
               stride(call.out(0), 0),
               stride(call.out(1), 0),
               stride(call.in(1), 0)};
  f.team = choose_team(static_cast<uint64_t>(f.rows), static_cast<uint64_t>(f.classes),
                       std::abs(f.x_column) <= std::abs(f.x_row));
  const auto kernel = cross_entropy_kernel<T>;
  const uint64_t groups = (static_cast<uint64_t>(f.rows) + f.team.teams() - 1) / f.team.teams();
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, groups, occupancy), kBlock, 0, submission.handle(), f,
                 submission.index_report());
  submission.launched();
}

template <class T> void backward(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const plugrad_view& out = call.out();
  Backward<T> b{{},
                data<T>(out),
                Input<T>(call.in(0)),
                Input<T>(call.in(1)),
                Input<T>(call.in(3)),
                Input<int64_t>(call.in(2)),
                out.shape[1],
                stride(call.in(0), 0),
                stride(call.in(3), 0),
                stride(call.in(2), 0)};
  b.walk.add(out.shape[1], {stride_of(out, 1), stride(call.in(1), 1), 0, 1});
  b.walk.add(out.shape[0], {stride_of(out, 0), stride(call.in(1), 0), 1, 0});
  b.walk.close();
  const auto kernel = cross_entropy_backward_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, (b.walk.count + kBlock - 1) / kBlock, occupancy), kBlock, 0,
                 submission.handle(), b, submission.index_report());
  submission.launched();
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<submit<forward<T>>>(PLUGRAD_OP_CROSS_ENTROPY, dtype_of<T>, kMemoryOnly)...},
              std::array{kernel<submit<backward<T>>>(PLUGRAD_OP_CROSS_ENTROPY_BACKWARD, dtype_of<T>)...});
}
constexpr auto kRows = rows(kFloating);

}  // namespace

Rows cross_entropy_rows() { return kRows; }

}  // namespace plugrad::cuda
