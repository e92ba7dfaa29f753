// For devices with memory that the host cannot read, and a driver with in-order queues. Derive the device from
// QueuedBackend, and wrap the driver's queue in a DeviceQueue of four functions. The SDK then has streams, their numbers,
// waits, staging memory for copies and late failures. An op without a kernel of your own runs as a loop in host memory, on
// copies of its operands, in its place in the queue: so a plugin begins with every op and replaces them one by one.
//
// Each stream has a thread, which hands the work of the stream to the driver. A kernel therefore may call functions of the
// driver that take long, and run returns at once.
#pragma once
#include <plugrad/sdk/loop_rows.hpp>
#include <plugrad/sdk/queue/staged.hpp>
#include <plugrad/sdk/queue/stream.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {
namespace queued {

template <class Queue> Queue& queue_of(void (*)(const Call&, Queue&), DeviceQueue& queue) {
  return static_cast<Queue&>(queue);
}

// Submits the call to its stream, which runs Function(const Call&, Queue&) on a copy of the op. kOnHost: all earlier work is
// done before the function begins.
template <auto Function, bool kOnHost = false>
void enqueue(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  QueuedStream::of(*reinterpret_cast<Stream*>(stream))
      .run(kernel, *op, [](const Call& call, DeviceQueue& queue) { Function(call, queue_of(Function, queue)); }, kOnHost);
}
template <auto Function, bool kOnHost = false>
plugrad_status submit(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) noexcept {
  try {
    enqueue<Function, kOnHost>(kernel, stream, op);
    return PLUGRAD_OK;
  } catch (...) {
    return report_exception(kernel);
  }
}

}  // namespace queued

// Returns a row: Function(const Call&, Queue&) puts opcode into the driver's queue, where Queue is the backend's class of
// queues. The other arguments are as for kernel. The function runs in the stream's thread, and may throw BackendError.
template <auto Function>
constexpr KernelRow queued_kernel(uint32_t opcode, uint8_t dtype, uint16_t layouts = PLUGRAD_ALL_LAYOUTS,
                                  uint32_t flags = kPlainFlags) {
  return kernel_row(opcode, dtype, queued::submit<Function>, layouts, flags);
}
template <auto Function>
constexpr KernelRow queued_kernel(uint32_t opcode, std::initializer_list<uint8_t> dtypes,
                                  uint16_t layouts = PLUGRAD_ALL_LAYOUTS, uint32_t flags = kPlainFlags) {
  KernelRow row{opcode, flags, layouts, 0, {}, queued::submit<Function>, nullptr};
  for (uint8_t dtype : dtypes) row.dtypes[row.operands++] = dtype;
  return row;
}

// Returns a backend's own rows, followed by all loops of the SDK as loops on copies. Link the plugin with plugrad::loops.
inline std::vector<KernelRow> staged_loops_after(Rows own) {
  std::vector<KernelRow> all(own.begin(), own.end());
  for (const KernelRow& loop : loops::rows()) {
    KernelRow row = loop;
    row.run = queued::submit<queued::run_staged, true>;
    row.workspace = nullptr;
    row.own = &loop;
    all.push_back(row);
  }
  return all;
}

// A backend whose streams are queues of a driver. Override make_queue, alloc, free and info, and kernels.
class QueuedBackend : public Backend {
 public:
  // Opens a queue of the driver. role: PLUGRAD_COMPUTE_STREAM or PLUGRAD_COPY_STREAM, a hint.
  virtual std::unique_ptr<DeviceQueue> make_queue(uint32_t role) = 0;

  // Returns the description of a device with streams and memory of its own. alignment: of buffers, in bytes.
  static plugrad_device_info queued_info(std::string_view name, uint32_t alignment = 256) {
    plugrad_device_info info = host_info(name, PLUGRAD_ASYNC);
    info.alignment = alignment;
    return info;
  }

  std::unique_ptr<Stream> stream_create(uint32_t role) override {
    return std::make_unique<queued::QueuedStream>(make_queue(role));
  }
  void copy(Stream* stream, const plugrad_copy& copy) override {
    if (!stream) throw BackendError(PLUGRAD_INVALID, "a copy without a stream");
    queued::QueuedStream& own = queued::QueuedStream::of(*stream);
    const bool up = copy.from.kind == PLUGRAD_HOST, down = copy.to.kind == PLUGRAD_HOST;
    if ((copy.to.kind != PLUGRAD_DEVICE && copy.from.kind != PLUGRAD_DEVICE) || copy.to.kind > PLUGRAD_DEVICE ||
        copy.from.kind > PLUGRAD_DEVICE)
      throw BackendError(PLUGRAD_UNSUPPORTED, "a copy between two places outside of the device");
    if (copy.to.device && copy.from.device && copy.to.device != copy.from.device)
      throw BackendError(PLUGRAD_UNSUPPORTED, "a copy between two devices");
    up ? own.write(copy) : down ? own.read(copy) : own.move(copy);
  }
  plugrad_status completed(Stream& stream, uint64_t& number) noexcept override {
    const queued::QueuedStream& own = queued::QueuedStream::of(stream);
    number = own.done();  // before the state: a failed number is done only once its failure is known
    const plugrad_status state = own.state();
    if (state == PLUGRAD_DEVICE_LOST) number = own.accepted();
    return state;
  }
  void wait(Stream& stream, Stream& other, uint64_t& number) override {
    queued::QueuedStream::of(stream).follow(queued::QueuedStream::of(other), number);
  }
  void sync(Stream& stream, plugrad_failure& failure) override { queued::QueuedStream::of(stream).sync(failure); }
};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
