#include <bridge/devices.hpp>

#include <c10/util/Exception.h>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace plugrad_torch {
namespace {
std::vector<std::string> listed_names() {
  const char* list = std::getenv("PLUGRAD_TORCH_DEVICES");
  std::vector<std::string> names;
  if (!list || !*list) names = plugrad::device_names();
  else {
    std::stringstream text(list);
    for (std::string name; std::getline(text, name, ',');) names.push_back(name);
  }
  // An index of PyTorch has 8 bits.
  if (names.size() > std::numeric_limits<c10::DeviceIndex>::max())
    names.resize(std::numeric_limits<c10::DeviceIndex>::max());
  return names;
}

std::vector<std::atomic<plugrad::DeviceState*>>& open_devices() {
  static auto& all = *new std::vector<std::atomic<plugrad::DeviceState*>>(device_names().size());
  return all;
}

void require_index(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index < device_count(), "plugrad has no device ", static_cast<int>(index), ": there are ",
              static_cast<int>(device_count()), " devices, listed by plugrad_torch.devices()");
}

thread_local c10::DeviceIndex current = 0;
}  // namespace

const std::vector<std::string>& device_names() {
  static const std::vector<std::string>& names = *new std::vector<std::string>(listed_names());
  return names;
}
c10::DeviceIndex device_count() { return static_cast<c10::DeviceIndex>(device_names().size()); }

plugrad::Device device_at(c10::DeviceIndex index) {
  require_index(index);
  std::atomic<plugrad::DeviceState*>& slot = open_devices()[static_cast<size_t>(index)];
  if (plugrad::DeviceState* open = slot.load(std::memory_order_acquire)) return plugrad::Device(open);
  const plugrad::Device device(device_names()[static_cast<size_t>(index)]);
  slot.store(&device.state(), std::memory_order_release);
  return device;
}

c10::DeviceIndex index_of(plugrad::Device device) {
  auto& all = open_devices();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].load(std::memory_order_acquire) == &device.state()) return static_cast<c10::DeviceIndex>(i);
  TORCH_CHECK(false, "plugrad's device ", device.name(), " has no index in PyTorch: name it in PLUGRAD_TORCH_DEVICES");
}

bool is_open(c10::DeviceIndex index) {
  return open_devices()[static_cast<size_t>(index)].load(std::memory_order_acquire) != nullptr;
}

void synchronize(c10::DeviceIndex index) {
  try {
    device_at(index).sync();
  } catch (const plugrad::Error& error) {
    if (error.code() == plugrad::Code::index_error) C10_THROW_ERROR(IndexError, error.what());
    TORCH_CHECK(false, error.what());
  }
}

c10::DeviceIndex current_device() { return current; }
void set_current_device(c10::DeviceIndex index) {
  require_index(index);
  current = index;
}
c10::DeviceIndex index_or_current(std::optional<c10::Device> device) {
  const c10::DeviceIndex index = device && device->has_index() ? device->index() : current;
  require_index(index);
  return index;
}

}  // namespace plugrad_torch
