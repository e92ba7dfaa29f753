// A plugrad backend for @NAME@, a device with memory of its own and in-order queues. From the start it has every op for
// training: the SDK's loops, on copies of the operands in host memory, in their place in the queue. Replace them by your
// device's kernels, op by op; plugrad-conform tells whether each kernel computes the right values.
#include <plugrad/sdk/queue.hpp>

#include <cstdlib>

namespace {

using plugrad::Call;

// --- The driver. These functions stand for it, in host memory: put your driver's functions in their place.

char* bytes_of(plugrad_buffer* buffer) { return reinterpret_cast<char*>(buffer); }

// A queue of the driver. Its functions may enqueue and return; finish waits.
class Queue final : public plugrad::DeviceQueue {
 public:
  void write(plugrad_buffer* to, uint64_t offset, const void* from, uint64_t bytes) override {
    std::memcpy(bytes_of(to) + offset, from, bytes);
  }
  void read(void* to, plugrad_buffer* from, uint64_t offset, uint64_t bytes) override {
    std::memcpy(to, bytes_of(from) + offset, bytes);
  }
  void copy(plugrad_buffer* to, uint64_t to_offset, plugrad_buffer* from, uint64_t from_offset, uint64_t bytes) override {
    std::memcpy(bytes_of(to) + to_offset, bytes_of(from) + from_offset, bytes);
  }
  void finish() override {}

  // Starts a kernel of your device.
  void add(float* out, const float* a, const float* b, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
  }
};

// --- Kernels of your own. The row below serves dense f32 operands (0: no further layouts).

void add(const Call& call, Queue& queue) {
  const auto address = [](const plugrad_view& x) { return reinterpret_cast<float*>(bytes_of(x.buffer) + x.offset); };
  queue.add(address(call.out()), address(call.in(0)), address(call.in(1)), call.out().count);
}

constexpr std::array kRows{plugrad::queued_kernel<add>(PLUGRAD_OP_ADD, PLUGRAD_F32, 0)};

// An object for each opened device.
class @CLASS@ final : public plugrad::QueuedBackend {
 public:
  explicit @CLASS@(const plugrad::Opening& opening) {
    opening.options.allow({});  // the names of your options; read them by opening.options.find
  }

  // Returns the number of devices. If the hardware or its driver is missing: {0, "the reason"}.
  static plugrad::DeviceCount count() { return {1, ""}; }

  plugrad_device_info info() const override { return queued_info("@NAME@", kAlignment); }
  plugrad::Rows kernels() const override { return rows_; }

  plugrad_buffer* alloc(uint64_t bytes) override {
    const uint64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const made = bytes < SIZE_MAX / 2 ? std::aligned_alloc(kAlignment, whole) : nullptr;
    if (!made) throw std::bad_alloc();
    return static_cast<plugrad_buffer*>(made);
  }
  void free(plugrad_buffer* buffer) noexcept override { std::free(buffer); }

  // role: PLUGRAD_COMPUTE_STREAM or PLUGRAD_COPY_STREAM, a hint.
  std::unique_ptr<plugrad::DeviceQueue> make_queue(uint32_t /*role*/) override { return std::make_unique<Queue>(); }

 private:
  static constexpr uint32_t kAlignment = 256;
  // If several rows serve a call, the first row wins.
  const std::vector<plugrad::KernelRow> rows_ = plugrad::staged_loops_after(kRows);
};

}  // namespace

PLUGRAD_EXPORT_BACKEND(@CLASS@, "@NAME@", "0.1")
