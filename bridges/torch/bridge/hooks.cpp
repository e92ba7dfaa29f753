// What PyTorch asks of the type of devices: generators, and memory of the host for asynchronous copies.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <bridge/devices.hpp>
#include <bridge/generator.hpp>
#include <bridge/memory.hpp>
#include <bridge/pinned.hpp>
#include <bridge/tensors.hpp>

namespace plugrad_torch {
namespace {
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return is_open(index < 0 ? current_device() : index); }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex before = current_device();
    set_current_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current_device() : exchangeDevice(index);
  }
  bool isPinnedPtr(const void* data) const override { return pinned_at(data).memory != nullptr; }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  at::Device getDeviceFromPtr(void* data) const override {
    const Place place = place_of(c10::DataPtr(data, at_index(0)));
    TORCH_CHECK(place.block, data, " is not an address of a device of plugrad");
    return at_index(place.block->index());
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    grow(*storage.unsafeGetStorageImpl(), bytes, storage.device().index());
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

[[maybe_unused]] const bool registered = [] {
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &allocator(), 1);
  static Hooks& hooks = *new Hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();
}  // namespace
}  // namespace plugrad_torch
