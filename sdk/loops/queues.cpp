// The streams of queue.hpp behind functions of C.
#include <plugrad/sdk/queue.h>
#include <plugrad/sdk/queue.hpp>

namespace {

// A queue of a driver in C.
class Queue final : public plugrad::DeviceQueue {
 public:
  Queue(const plugrad_queue_driver& functions, void* queue) : functions_(functions), queue_(queue) {}

  void write(plugrad_buffer* to, uint64_t offset, const void* from, uint64_t bytes) override {
    demand(functions_.write(queue_, to, offset, from, bytes), "write");
  }
  void read(void* to, plugrad_buffer* from, uint64_t offset, uint64_t bytes) override {
    demand(functions_.read(queue_, to, from, offset, bytes), "read");
  }
  void copy(plugrad_buffer* to, uint64_t to_offset, plugrad_buffer* from, uint64_t from_offset, uint64_t bytes) override {
    demand(functions_.copy(queue_, to, to_offset, from, from_offset, bytes), "copy");
  }
  void finish() override { demand(functions_.finish(queue_), "finish"); }
  bool take_index_error() override { return functions_.take_index_error && functions_.take_index_error(queue_); }

  void start(const plugrad_queued_kernel& kernel, const plugrad_op& op) {
    demand(kernel.start(&kernel, queue_, &op), "start");
  }

 private:
  void demand(plugrad_status status, const char* function) const {
    if (status == PLUGRAD_OK) return;
    const char* const why = functions_.message ? functions_.message(queue_) : nullptr;
    throw plugrad::BackendError(
        status,
        why ? why : "the driver's function " + std::string(function) + " failed with status " + std::to_string(status));
  }

  const plugrad_queue_driver& functions_;
  void* const queue_;
};

class Queues final : public plugrad::QueuedBackend {
 public:
  Queues(const plugrad_queue_driver& functions, void* driver) : driver_(driver) {
    if (functions.struct_size < offsetof(plugrad_queue_driver, message) + sizeof functions.message)
      throw plugrad::BackendError(PLUGRAD_INVALID, "the plugrad_queue_driver has " + std::to_string(functions.struct_size) +
                                                       " bytes, fewer than its first version");
    std::memcpy(&functions_, &functions, std::min<size_t>(functions.struct_size, sizeof functions_));
  }

  void* driver() const { return driver_; }
  static plugrad::DeviceCount count() { return {1, ""}; }  // unused: the plugin counts
  plugrad_device_info info() const override { return queued_info(functions_.name, functions_.alignment); }
  plugrad::Rows kernels() const override { return rows_; }

  plugrad_buffer* alloc(uint64_t bytes) override {
    plugrad_buffer* buffer = nullptr;
    if (const plugrad_status status = functions_.alloc(driver_, bytes, &buffer))
      throw plugrad::BackendError(status, "the driver's function alloc failed for " + std::to_string(bytes) + " bytes");
    return buffer;
  }
  void free(plugrad_buffer* buffer) noexcept override { functions_.free(driver_, buffer); }
  std::unique_ptr<plugrad::DeviceQueue> make_queue(uint32_t role) override {
    void* queue = nullptr;
    if (const plugrad_status status = functions_.queue_create(driver_, role, &queue))
      throw plugrad::BackendError(status, "the driver's function queue_create failed");
    return std::make_unique<Queue>(functions_, queue);
  }

 private:
  plugrad_queue_driver functions_{};  // fields that the plugin does not have yet are 0
  void* const driver_;
  const std::vector<plugrad::KernelRow> rows_ = plugrad::staged_loops_after({});
};

using plugrad::Trampolines;

void start(const plugrad::Call& call, Queue& queue) {
  queue.start(*reinterpret_cast<const plugrad_queued_kernel*>(call.kernel()), call.op());
}

}  // namespace

plugrad_status plugrad_queues_open(const plugrad_host* host, const plugrad_options* options,
                                   const plugrad_queue_driver* functions, void* driver, plugrad_device** device,
                                   plugrad_device_info* info) {
  return plugrad::guarded(host, [&] {
    plugrad::Options(options).allow({});
    plugrad::open_backend(host, std::make_unique<Queues>(*functions, driver), device, info);
  });
}

void* plugrad_queues_driver(plugrad_device* device) { return plugrad::backend_of<Queues>(device).driver(); }

const plugrad_kernel* plugrad_queues_resolve(plugrad_device* device, const plugrad_signature* signature) {
  return plugrad::resolve_row(device, signature);
}

plugrad_status plugrad_queues_run(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  return plugrad::guarded(plugrad::OpenDevice::of(stream).host,
                          [&] { plugrad::queued::enqueue<start>(kernel, stream, op); });
}

plugrad_status plugrad_queues_alloc(plugrad_device* device, uint64_t bytes, plugrad_buffer** buffer) {
  return Trampolines::alloc(device, bytes, buffer);
}
void plugrad_queues_free(plugrad_device* device, plugrad_buffer* buffer) { Trampolines::free(device, buffer); }
plugrad_status plugrad_queues_copy(plugrad_stream* stream, const plugrad_copy* copy) {
  return Trampolines::copy(stream, copy);
}
plugrad_status plugrad_queues_stream_create(plugrad_device* device, uint32_t role, plugrad_stream** stream) {
  return Trampolines::stream_create(device, role, stream);
}
plugrad_status plugrad_queues_completed(plugrad_stream* stream, uint64_t* number) {
  return Trampolines::completed(stream, number);
}
plugrad_status plugrad_queues_wait(plugrad_stream* stream, plugrad_stream* other, uint64_t* number) {
  return Trampolines::wait(stream, other, number);
}
plugrad_status plugrad_queues_sync(plugrad_stream* stream, plugrad_failure* failure) {
  return Trampolines::sync(stream, failure);
}
