#include <backends/vulkan/cache_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace plugrad::vulkan {
namespace {
namespace fs = std::filesystem;
constexpr uint64_t kMostBytes = 64 << 20;

// Before the driver's data. The file is for this machine alone, so numbers have its byte order.
struct Header {
  char magic[8];
  uint64_t bytes, digest;  // of the data
  uint32_t driver;         // its version, missing in the driver's own header
  uint32_t unused;
};
constexpr char kMagic[8] = {'p', 'l', 'u', 'g', 'v', 'k', 'c', '1'};

// How Vulkan's data begin: VkPipelineCacheHeaderVersionOne.
struct DriverHeader {
  uint32_t bytes, version, vendor, device;
  uint8_t identity[VK_UUID_SIZE];
};

uint64_t digest_of(std::span<const char> data) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;

  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  bool close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

bool is_ours(const struct stat& about) {
  const bool private_file = S_ISREG(about.st_mode) && about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
  return private_file && about.st_size >= 0 && static_cast<uint64_t>(about.st_size) <= sizeof(Header) + kMostBytes;
}

bool read_all(int file, void* to, size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes) {
    const ssize_t got = ::read(file, at, bytes);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int file, const void* from, size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes) {
    const ssize_t put = ::write(file, at, bytes);
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

// Returns an empty path without a cache directory, as in a program with raised privileges.
fs::path directory_of(const char* given) {
  if (given) return std::strcmp(given, "off") == 0 ? fs::path() : fs::path(given);
  for (const auto& [variable, below] : {std::pair("XDG_CACHE_HOME", "plugrad"), std::pair("HOME", ".cache/plugrad")})
    if (const char* base = secure_getenv(variable); base && *base == '/') return fs::path(base) / below;
  return {};
}
}  // namespace

CacheFile::CacheFile(const char* directory, const VkPhysicalDeviceProperties& device) : device_(device) {
  const fs::path folder = directory_of(directory);
  if (folder.empty()) return;
  char name[64];
  std::snprintf(name, sizeof name, "vulkan-%04x-%04x-%08x.pipelines", device.vendorID, device.deviceID,
                device.driverVersion);
  path_ = folder / name;
}

bool CacheFile::is_of_the_device(std::span<const char> data) const {
  DriverHeader header;
  if (data.size() <= sizeof header) return false;
  std::memcpy(&header, data.data(), sizeof header);
  return header.bytes == sizeof header && header.version == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         header.vendor == device_.vendorID && header.device == device_.deviceID &&
         std::memcmp(header.identity, device_.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

std::vector<char> CacheFile::read() const {
  if (path_.empty()) return {};
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about;
  if (!file || fstat(file.get(), &about) != 0 || !is_ours(about)) return {};
  Header header;
  if (!read_all(file.get(), &header, sizeof header)) return {};
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.driver != device_.driverVersion) return {};
  if (header.bytes + sizeof header != static_cast<uint64_t>(about.st_size)) return {};
  std::vector<char> data(header.bytes);
  if (!read_all(file.get(), data.data(), data.size())) return {};
  if (digest_of(data) != header.digest || !is_of_the_device(data)) return {};
  return data;
}

void CacheFile::write(std::span<const char> data) const noexcept {
  if (path_.empty() || data.size() > kMostBytes || !is_of_the_device(data)) return;
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.bytes = data.size();
  header.digest = digest_of(data);
  header.driver = device_.driverVersion;
  try {
    std::error_code none;
    fs::create_directories(fs::path(path_).parent_path(), none);
    const std::string part = path_ + "." + std::to_string(getpid());
    Descriptor file(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return;
    const bool whole = write_all(file.get(), &header, sizeof header) && write_all(file.get(), data.data(), data.size());
    if (!file.close() || !whole || std::rename(part.c_str(), path_.c_str()) != 0) unlink(part.c_str());
  } catch (const std::exception&) {
  }
}

}  // namespace plugrad::vulkan
