// What PyTorch asks of a device: the current index, streams and events.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <bridge/devices.hpp>
#include <plugrad/runtime/event.hpp>

#include <chrono>
#include <optional>

namespace plugrad_torch {
namespace {
using Clock = std::chrono::steady_clock;

struct RecordedEvent {
  plugrad::Event event;
  std::optional<Clock::time_point> time;  // for an event with timing: of the host, when the device had finished
};

// A device has one stream: plugrad orders ops and copies by the memory that they use.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = c10::DeviceType::PrivateUse1;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return static_type; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return at_index(current_device()); }
  void setDevice(c10::Device device) const override { set_current_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count()) set_current_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    try {
      return device_count();
    } catch (...) {
      return 0;
    }
  }

  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  bool queryStream(const c10::Stream& stream) const override { return plugrad::Event(device_of(stream.device())).is_done(); }
  void synchronizeStream(const c10::Stream& stream) const override { synchronize(stream.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex index) const override { synchronize(index); }

  // Plugins have no clock: recording an event with timing waits for the device, and reads the host's clock.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    const plugrad::Device device = device_of(stream.device());
    if (!*event) *event = new RecordedEvent;
    auto& recorded = *static_cast<RecordedEvent*>(*event);
    recorded.event.record(device);
    if (flag != c10::EventFlag::BACKEND_DEFAULT) return;
    device.sync();
    recorded.time = Clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override { return !event || static_cast<RecordedEvent*>(event)->event.is_done(); }
  void synchronizeEvent(void* event) const override {
    if (event) static_cast<RecordedEvent*>(event)->event.wait();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<RecordedEvent*>(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    const auto time = [](void* event) {
      TORCH_CHECK(event && static_cast<RecordedEvent*>(event)->time,
                  "an event's time needs enable_timing=True and a record()");
      return *static_cast<RecordedEvent*>(event)->time;
    };
    return std::chrono::duration<double, std::milli>(time(end) - time(start)).count();
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace
}  // namespace plugrad_torch
