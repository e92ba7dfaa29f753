// The Vulkan library of the system, and the devices on which the backend can compute.
#pragma once
#include <backends/vulkan/api.hpp>
#include <backends/vulkan/matrix_units.hpp>

#include <plugrad/sdk/backend.hpp>

#include <string>
#include <vector>

namespace plugrad::vulkan {

// A device's abilities beyond the backend's needs.
struct Abilities {
  bool f64 = false, i16 = false, budget = false;
  bool keeps_denormals = false;  // pipelines can demand that f32 keeps denormal numbers
  bool rounds = false;           // and that f32 is rounded to nearest even
  bool keeps_nans = false;       // and that it keeps -0, infinities and NaN
  bool divides_exactly = false;  // the driver is known to round division and square root of f32 correctly
  MatrixUnits matrix_units;
};

struct Candidate {
  VkPhysicalDevice handle = nullptr;
  VkPhysicalDeviceProperties properties{};
  uint64_t largest_buffer = 0;  // bytes
  uint32_t queue_family = 0;
  std::string identity;  // the device's UUID
  Abilities abilities;

  bool is_software() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
};

// Opened when a program first asks for devices; constant from then on, and never closed.
class Driver {
 public:
  static const Driver& get();

  const InstanceFunctions& functions() const { return functions_; }
  // The usable devices: discrete GPUs before integrated ones, and software last.
  const std::vector<Candidate>& devices() const { return devices_; }
  // The reason for a lack of devices.
  const std::string& reason() const { return reason_; }

 private:
  void open();
  bool make_instance(PFN_vkGetInstanceProcAddr find);
  void list_devices();

  VkInstance instance_ = nullptr;
  InstanceFunctions functions_;
  std::vector<Candidate> devices_;
  std::string reason_;
};

// The name of a result, for messages.
std::string text_of(VkResult result);

}  // namespace plugrad::vulkan
