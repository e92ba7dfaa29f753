// A test plugin with private ops.
#include <plugrad/sdk/backend.hpp>
#include <plugrad/sdk/private.hpp>

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace {
using plugrad::Call, plugrad::KernelRow, plugrad::Rows;

constexpr uint32_t kScaleAdd = PLUGRAD_PRIVATE_OPS, kSplit = PLUGRAD_PRIVATE_OPS + 1, kFails = PLUGRAD_PRIVATE_OPS + 2;

struct ScaleAdd {
  uint32_t struct_size;
  float scale;
};

// out = scale a + b
void scale_add(const Call& call) {
  const float *a = plugrad::data<float>(call.in(0)), *b = plugrad::data<float>(call.in(1));
  const float scale = call.attributes<ScaleAdd>().scale;
  float* out = plugrad::data<float>(call.out());
  std::transform(a, a + call.out().count, b, out, [&](float x, float y) { return scale * x + y; });
}

// The halves of a vector.
void split(const Call& call) {
  const float* from = plugrad::data<float>(call.in(0));
  for (int i = 0; i < 2; from += call.out(i++).count)
    std::copy_n(from, call.out(i).count, plugrad::data<float>(call.out(i)));
}

void fails(const Call&) { throw std::runtime_error("it always does"); }

void fill(const Call& call) {
  std::fill_n(plugrad::data<float>(call.out()), call.out().count, plugrad::immediate<float>(call.in(0)));
}
// Supports ranks up to 2, which suffices for the tests.
void move_elements(const Call& call) {
  const plugrad_view &out = call.out(), &in = call.in(0);
  const auto at = [](const plugrad_view& v, int64_t i, int64_t j) {
    return plugrad::data<float>(v) + (v.rank > 1 ? i * v.strides[0] + j * v.strides[1] : v.rank ? j * v.strides[0] : 0);
  };
  const int64_t rows = out.rank > 1 ? out.shape[0] : 1, columns = out.rank ? out.shape[out.rank - 1] : 1;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) *at(out, i, j) = *at(in, i, j);
}
void add(const Call& call) {
  const float *a = plugrad::data<float>(call.in(0)), *b = plugrad::data<float>(call.in(1));
  std::transform(a, a + call.out().count, b, plugrad::data<float>(call.out()), std::plus<float>());
}

constexpr plugrad_private_op kOps[] = {plugrad::private_op(kScaleAdd, "scale_add", 1, 2, sizeof(ScaleAdd)),
                                       plugrad::private_op(kSplit, "split_halves", 2, 1),
                                       plugrad::private_op(kFails, "fails", 1, 1)};
constexpr plugrad_private_ops kPrivate = plugrad::private_ops(kOps);

class Own final : public plugrad::Backend {
 public:
  explicit Own(const plugrad::Opening&) {}
  static plugrad::DeviceCount count() { return {1, ""}; }
  static const void* extension(std::string_view name) noexcept { return name == PLUGRAD_PRIVATE ? &kPrivate : nullptr; }
  Rows kernels() const override {
    constexpr uint8_t f32 = PLUGRAD_F32;
    static const KernelRow rows[] = {
        plugrad::kernel<fill>(PLUGRAD_OP_FILL, f32),
        plugrad::kernel<move_elements>(PLUGRAD_OP_COPY, f32),
        plugrad::kernel<add>(PLUGRAD_OP_ADD, f32, 0),
        plugrad::private_kernel<scale_add>(kScaleAdd, {f32, f32, f32}),
        plugrad::private_kernel<split>(kSplit, {f32, f32, f32}),
        plugrad::private_kernel<fails>(kFails, {f32, f32}),
    };
    return rows;
  }
};
}  // namespace

PLUGRAD_EXPORT_BACKEND(Own, "own", "1")
