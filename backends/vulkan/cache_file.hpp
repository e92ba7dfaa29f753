// Compiled pipelines on disk, in a file for each device and driver. A driver may crash on foreign data, so a file is valid
// only if its data begin as the device's data do.
#pragma once
#include <backends/vulkan/api.hpp>
#include <plugrad/sdk/cache.hpp>

#include <span>
#include <string>
#include <vector>

namespace plugrad::vulkan {

class CacheFile {
 public:
  // directory: as DeviceCache's.
  CacheFile(const char* directory, const VkPhysicalDeviceProperties& device);

  // Empty if there is no cache directory.
  const std::string& path() const { return file_.path(); }
  // Returns the data of the last write(), in this process or another; nothing if there is no valid file.
  std::vector<char> read() const;
  // Replaces the file in one step. Has no effect if this fails, or for data that read() would not return.
  void write(std::span<const char> data) const noexcept;

 private:
  bool is_of_the_device(std::span<const char> data) const;

  const VkPhysicalDeviceProperties& device_;
  const DeviceCache file_;
};

}  // namespace plugrad::vulkan
