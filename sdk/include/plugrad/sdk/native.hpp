// The extension of native.h for authors of backends: derive from NativeStreams as well, and override its functions.
//
//   class Npu final : public plugrad::Backend, public plugrad::NativeStreams { ... };
//
// backend_table and PLUGRAD_EXPORT_BACKEND then offer the extension.
#pragma once
#include <plugrad/sdk/native.h>
#include <plugrad/sdk/backend.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// The callback of notify; notify calls it once.
struct Notice {
  void (*callback)(void* context);
  void* context;
  void operator()() const { callback(context); }
};

// The functions of plugrad_native; native.h states their threads and their waiting. They may throw, as in Backend.
class NativeStreams {
 public:
  virtual ~NativeStreams() = default;
  virtual void* native_handle(Stream& stream) = 0;
  virtual void wait_native(Stream& stream, uint64_t number, void* native) = 0;
  virtual void signal_native(Stream& stream, uint64_t number, void* native) = 0;
  virtual void notify(Stream& stream, uint64_t number, Notice notice) = 0;
};

template <class B> struct NativeTrampolines {
  template <class Body> static plugrad_status on(plugrad_stream* stream, Body body) noexcept {
    OpenDevice& device = OpenDevice::of(stream);
    return guarded(device.host, [&] {
      body(static_cast<NativeStreams&>(static_cast<B&>(*device.backend)), *reinterpret_cast<Stream*>(stream));
    });
  }
  static plugrad_status handle(plugrad_stream* stream, void** native) noexcept {
    return on(stream, [&](NativeStreams& b, Stream& s) { *native = b.native_handle(s); });
  }
  static plugrad_status wait(plugrad_stream* stream, uint64_t number, void* native) noexcept {
    return on(stream, [&](NativeStreams& b, Stream& s) { b.wait_native(s, number, native); });
  }
  static plugrad_status signal(plugrad_stream* stream, uint64_t number, void* native) noexcept {
    return on(stream, [&](NativeStreams& b, Stream& s) { b.signal_native(s, number, native); });
  }
  static plugrad_status notify(plugrad_stream* stream, uint64_t number, void (*callback)(void*), void* context) noexcept {
    return on(stream, [&](NativeStreams& b, Stream& s) { b.notify(s, number, {callback, context}); });
  }
};

template <class B> const void* native_extension(std::string_view name) noexcept {
  using T = NativeTrampolines<B>;
  static constexpr plugrad_native kTable = {sizeof(plugrad_native), 0, T::handle, T::wait, T::signal, T::notify};
  return name == PLUGRAD_NATIVE ? &kTable : nullptr;
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
