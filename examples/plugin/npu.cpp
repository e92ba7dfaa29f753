// A backend in one file, with the f32 kernels that training a small network needs. Its device memory is host memory.
// The host composes other ops from these kernels. For an op that it cannot compose, it throws an error with the names of the
// op and the device.
#include <plugrad/sdk/backend.hpp>

#include <cmath>

namespace {

using plugrad::Call;
using plugrad::kernel;
using Index = std::array<int64_t, PLUGRAD_MAX_RANK>;

// Computes the coordinates of row-major element i among rank extents.
Index coordinates(int64_t i, const int64_t* shape, int rank) {
  Index index{};
  for (int axis = rank - 1; axis >= 0; i /= shape[axis--]) index[axis] = i % shape[axis];
  return index;
}

float& element(const plugrad_view& view, const Index& index) {
  int64_t offset = 0;
  for (int axis = 0; axis < view.rank; ++axis) offset += index[axis] * view.strides[axis];
  return plugrad::data<float>(view)[offset];
}

// Returns an element of an operand. The number in an expression such as x + 1 is an operand without memory.
float value(const plugrad_view& view, const Index& index) {
  return plugrad::is_immediate(view) ? plugrad::immediate<float>(view) : element(view, index);
}

template <auto Function> void map(const Call& call) {
  const plugrad_view& out = call.out();
  for (int64_t i = 0; i < out.count; ++i) {
    const Index index = coordinates(i, out.shape, out.rank);
    const float x = value(call.in(0), index);
    if constexpr (std::is_invocable_v<decltype(Function), float>) element(out, index) = Function(x);
    else element(out, index) = Function(x, value(call.in(1), index));
  }
}

// Sums over the axes where out has extent 1.
void sum(const Call& call) {
  const plugrad_view &out = call.out(), &x = call.in(0);
  int64_t reduced[PLUGRAD_MAX_RANK];
  for (int axis = 0; axis < x.rank; ++axis) reduced[axis] = out.shape[axis] == 1 ? x.shape[axis] : 1;
  for (int64_t i = 0; i < out.count; ++i) {
    const Index at = coordinates(i, out.shape, out.rank);
    double total = call.accumulates() ? element(out, at) : 0;
    for (int64_t j = 0; j < x.count / out.count; ++j) {
      Index index = coordinates(j, reduced, x.rank);
      for (int axis = 0; axis < x.rank; ++axis) index[axis] += at[axis];
      total += element(x, index);
    }
    element(out, at) = static_cast<float>(total);
  }
}

// (.., m, k) x (.., k, n); a transposed operand is a strided view.
void matmul(const Call& call) {
  const plugrad_view &out = call.out(), &a = call.in(0), &b = call.in(1);
  for (int64_t i = 0; i < out.count; ++i) {
    const Index at = coordinates(i, out.shape, out.rank);
    Index left = at, right = at;
    double total = call.accumulates() ? element(out, at) : 0;
    for (int64_t k = 0; k < a.shape[a.rank - 1]; ++k) {
      left[a.rank - 1] = right[b.rank - 2] = k;
      total += static_cast<double>(element(a, left)) * element(b, right);
    }
    element(out, at) = static_cast<float>(total);
  }
}

float same(float x) { return x; }
float add(float a, float b) { return a + b; }
float sub(float a, float b) { return a - b; }
float mul(float a, float b) { return a * b; }
float div(float a, float b) { return a / b; }

constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
constexpr uint32_t kAdding = plugrad::kPlainFlags | PLUGRAD_ACCUMULATE;
constexpr plugrad::KernelRow kKernels[] = {kernel<map<same>>(PLUGRAD_OP_FILL, PLUGRAD_F32),
                                           kernel<map<same>>(PLUGRAD_OP_COPY, PLUGRAD_F32),
                                           kernel<map<add>>(PLUGRAD_OP_ADD, PLUGRAD_F32),
                                           kernel<map<sub>>(PLUGRAD_OP_SUB, PLUGRAD_F32),
                                           kernel<map<mul>>(PLUGRAD_OP_MUL, PLUGRAD_F32),
                                           kernel<map<div>>(PLUGRAD_OP_DIV, PLUGRAD_F32),
                                           kernel<map<tanhf>>(PLUGRAD_OP_TANH, PLUGRAD_F32),
                                           kernel<sum>(PLUGRAD_OP_SUM, PLUGRAD_F32, kMemory, kAdding),
                                           kernel<matmul>(PLUGRAD_OP_MATMUL, PLUGRAD_F32, kMemory, kAdding)};

class Npu final : public plugrad::Backend {
 public:
  explicit Npu(const plugrad::Opening& opening) { opening.options.allow({}); }
  plugrad_device_info info() const override { return host_info("an NPU, imagined"); }
  plugrad::Rows kernels() const override { return kKernels; }
};

}  // namespace
PLUGRAD_EXPORT_BACKEND(Npu, "npu", "0.1")
