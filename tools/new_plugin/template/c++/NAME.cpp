// A plugrad backend for @NAME@. From the start it has every kernel for training: plain loops in host memory, from the SDK.
// Replace them by your device's kernels, op by op; plugrad-conform tells whether each kernel computes the right values.
#include <plugrad/sdk/loop_rows.hpp>

namespace {

using plugrad::Call;

// A kernel of your own: its row below serves dense f32 operands (0: no further layouts).
void add(const Call& call) {
  const float *a = plugrad::data<float>(call.in(0)), *b = plugrad::data<float>(call.in(1));
  float* out = plugrad::data<float>(call.out());
  for (int64_t i = 0; i < call.out().count; ++i) out[i] = a[i] + b[i];
}

constexpr std::array kRows{plugrad::kernel<add>(PLUGRAD_OP_ADD, PLUGRAD_F32, 0)};

// An object for each opened device.
class @CLASS@ final : public plugrad::Backend {
 public:
  explicit @CLASS@(const plugrad::Opening& opening) {
    opening.options.allow({});  // the names of your options; read them by opening.options.find
  }

  // Returns the number of devices. If the hardware or its driver is missing: {0, "the reason"}.
  static plugrad::DeviceCount count() { return {1, ""}; }

  // The host allocates, reads and writes the memory. Otherwise override alloc, free and copy, and leave out HOST_MEM.
  plugrad_device_info info() const override { return host_info("@NAME@"); }

  plugrad::Rows kernels() const override { return rows_; }

 private:
  // If several rows serve a call, the first row wins.
  const std::vector<plugrad::KernelRow> rows_ = plugrad::loops::rows_after(kRows);
};

}  // namespace

PLUGRAD_EXPORT_BACKEND(@CLASS@, "@NAME@", "0.1")
