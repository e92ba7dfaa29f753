// The extension of forms.h for authors of backends in C++: derive from OperandForms as well, and override find_form. A form
// is described by two rows of kernels; kernels() must not contain them.
//
//   class Npu final : public plugrad::Backend, public plugrad::OperandForms {
//     static const void* extension(std::string_view name) noexcept {
//       return name == PLUGRAD_FORMS ? &kForms<Npu, PLUGRAD_CHANNELS_LAST> : nullptr;
//     }
#pragma once
#include <plugrad/sdk/forms.h>
#include <plugrad/sdk/backend.hpp>

#include <map>
#include <mutex>
#include <optional>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

struct OperandForm {
  const KernelRow *maker, *reader;
  uint64_t bytes;
};

class OperandForms {
 public:
  virtual ~OperandForms() = default;
  // Returns the form of an input of this call, or nothing. The call has no stream, and its views have no memory. The rows
  // live as long as the process.
  virtual std::optional<OperandForm> find_form(const Call& call, uint32_t input) const = 0;

  // The kernel of a row on this device.
  const plugrad_kernel* kernel_of(OpenDevice& device, const KernelRow& row) {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] =
        kernels_.try_emplace(&row, BoundKernel{{sizeof(plugrad_kernel), 0, row.run, row.workspace}, &device, &row});
    return &place->second;
  }

 private:
  std::mutex mutex_;
  std::map<const KernelRow*, BoundKernel> kernels_;
};

template <class B>
uint32_t find_form(plugrad_device* device, const plugrad_kernel* kernel, const plugrad_op* op, uint32_t input,
                   plugrad_form* form) noexcept {
  try {
    OpenDevice& open = OpenDevice::of(device);
    OperandForms& backend = static_cast<B&>(*open.backend);
    const std::optional<OperandForm> found = backend.find_form(Call(kernel, nullptr, op), input);
    if (!found) return 0;
    form->bytes = found->bytes;
    form->maker = backend.kernel_of(open, *found->maker);
    form->reader = backend.kernel_of(open, *found->reader);
    return 1;
  } catch (...) {
    return 0;  // without memory there is no form
  }
}

template <class B, uint32_t flags = 0> inline constexpr plugrad_forms kForms{sizeof(plugrad_forms), flags, find_form<B>};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
