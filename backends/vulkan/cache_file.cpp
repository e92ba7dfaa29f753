#include <backends/vulkan/cache_file.hpp>

#include <cstring>

namespace plugrad::vulkan {
namespace {

// How Vulkan's data begin: VkPipelineCacheHeaderVersionOne.
struct DriverHeader {
  uint32_t bytes, version, vendor, device;
  uint8_t identity[VK_UUID_SIZE];
};

}  // namespace

CacheFile::CacheFile(const char* directory, const VkPhysicalDeviceProperties& device)
    : device_(device), file_("vulkan", std::to_string(device.vendorID) + " " + std::to_string(device.deviceID),
                             std::to_string(device.driverVersion), "", directory) {}

bool CacheFile::is_of_the_device(std::span<const char> data) const {
  DriverHeader header;
  if (data.size() <= sizeof header) return false;
  std::memcpy(&header, data.data(), sizeof header);
  return header.bytes == sizeof header && header.version == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         header.vendor == device_.vendorID && header.device == device_.deviceID &&
         std::memcmp(header.identity, device_.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

std::vector<char> CacheFile::read() const {
  std::vector<char> data = file_.read();
  return is_of_the_device(data) ? data : std::vector<char>();
}

void CacheFile::write(std::span<const char> data) const noexcept {
  if (is_of_the_device(data)) file_.write(data);
}

}  // namespace plugrad::vulkan
