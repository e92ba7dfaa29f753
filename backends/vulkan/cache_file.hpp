// Compiled pipelines on disk, in a file for each device and driver. A driver may crash on data that it did not write, so a
// file counts only if it is the user's own, whole, and of this very device and driver.
#pragma once
#include <backends/vulkan/api.hpp>

#include <span>
#include <string>
#include <vector>

namespace plugrad::vulkan {

class CacheFile {
 public:
  // directory: null for $XDG_CACHE_HOME/plugrad or ~/.cache/plugrad, "off" for none.
  CacheFile(const char* directory, const VkPhysicalDeviceProperties& device);

  // Empty if there is no cache directory.
  const std::string& path() const { return path_; }
  // Returns what write() last stored, in this process or in another; nothing if no file counts.
  std::vector<char> read() const;
  // Replaces the file in one step. Without effect if that is impossible, or for data that read() would not return.
  void write(std::span<const char> data) const noexcept;

 private:
  bool is_of_the_device(std::span<const char> data) const;

  const VkPhysicalDeviceProperties& device_;
  std::string path_;
};

}  // namespace plugrad::vulkan
