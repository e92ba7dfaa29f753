// The extension of together.h for authors of backends in C++: derive from Together as well, and override both functions.
//
//   class Npu final : public plugrad::Backend, public plugrad::Together {
//     static const void* extension(std::string_view name) noexcept {
//       return name == PLUGRAD_TOGETHER ? &plugrad::kTogether<Npu> : nullptr;
//     }
#pragma once
#include <plugrad/sdk/backend.hpp>
#include <plugrad/sdk/together.h>

#include <span>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

class Together {
 public:
  virtual ~Together() = default;
  // Whether the device gains from taking several ops of this kernel at once.
  virtual bool takes(const plugrad_kernel& kernel) const noexcept = 0;
  // Submits all ops, or throws, having submitted none.
  virtual void run_together(const plugrad_kernel& kernel, Stream& stream, std::span<const plugrad_op* const> ops) = 0;
};

template <class B> struct TogetherTrampolines {
  static uint32_t takes(plugrad_device* device, const plugrad_kernel* kernel) noexcept {
    return static_cast<const Together&>(backend_of<B>(device)).takes(*kernel);
  }
  static plugrad_status run(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* const* ops,
                            uint32_t count) noexcept {
    OpenDevice& device = OpenDevice::of(stream);
    return guarded(device.host, [&] {
      auto& backend = static_cast<Together&>(static_cast<B&>(*device.backend));
      backend.run_together(*kernel, *reinterpret_cast<Stream*>(stream), {ops, count});
    });
  }
};

template <class B>
inline constexpr plugrad_together kTogether{sizeof(plugrad_together), 0, TogetherTrampolines<B>::takes,
                                            TogetherTrampolines<B>::run};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
