// A file in the user's cache directory for what a plugin learns about a device: tuned sizes of tiles, compiled kernels. A
// later process of the same plugin, device and driver finds it again.
//
//   const DeviceCache cache("npu", device_name, driver_version);
//   std::vector<char> tuned = cache.read();         // empty: tune, then
//   cache.write(tuned);
//
// A file counts only if the user owns it and nobody else may write it, if it is complete, and if it is of the same plugin,
// device, driver and build. Two processes that write take turns: each replaces the file in one step.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// Returns a text that changes when the file of this code, the plugin, is built anew. If the file cannot be found, the text
// is of this process alone, so no later process takes what this one writes. Call it when the device is opened.
inline std::string build_of_plugin() {
  static const char here = 0;
  Dl_info about;
  struct stat file;
  if (!dladdr(&here, &about) || !about.dli_fname || stat(about.dli_fname, &file))
    return "process " + std::to_string(getpid()) + " " + std::to_string(std::time(nullptr));
  return std::to_string(file.st_size) + "-" + std::to_string(file.st_mtim.tv_sec) + "." +
         std::to_string(file.st_mtim.tv_nsec);
}

class DeviceCache {
 public:
  static constexpr uint64_t kMostBytes = 64 << 20;

  // plugin: the backend's name. device, driver: any texts that name the device and the driver's version. build: "" if the
  // contents serve each build of the plugin. directory: null for $XDG_CACHE_HOME/plugrad or ~/.cache/plugrad, "off" for
  // none.
  DeviceCache(std::string_view plugin, std::string_view device, std::string_view driver,
              std::string_view build = build_of_plugin(), const char* directory = nullptr) {
    const uint64_t place = digest_of(driver, digest_of(device, digest_of(plugin)));
    key_ = digest_of(build, place);
    const std::filesystem::path folder = directory_of(directory);
    if (folder.empty()) return;
    char name[32];
    std::snprintf(name, sizeof name, "-%016llx.cache", static_cast<unsigned long long>(place));
    path_ = folder / (std::string(plugin) + name);
  }

  // Empty if there is no cache directory, as in a program with raised privileges.
  const std::string& path() const { return path_; }

  // Returns the data of the last write(), in this process or another; nothing if there is no valid file.
  std::vector<char> read() const {
    if (path_.empty()) return {};
    const Descriptor file(open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat about;
    Header header;
    if (!file || fstat(file.get(), &about) || !is_ours(about) || !read_all(file.get(), &header, sizeof header)) return {};
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) || header.key != key_) return {};
    if (header.bytes + sizeof header != static_cast<uint64_t>(about.st_size)) return {};
    std::vector<char> data(header.bytes);
    if (!read_all(file.get(), data.data(), data.size()) || digest_of({data.data(), data.size()}) != header.digest) return {};
    return data;
  }

  // Replaces the file in one step. Has no effect if this fails, or for more than kMostBytes.
  void write(std::span<const char> data) const noexcept {
    if (path_.empty() || data.size() > kMostBytes) return;
    Header header{{}, data.size(), digest_of({data.data(), data.size()}), key_};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    try {
      std::error_code none;
      std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), none);
      std::string part = path_ + ".XXXXXX";
      Descriptor file(mkostemp(part.data(), O_CLOEXEC));  // 0600
      if (!file) return;
      const bool whole = write_all(file.get(), &header, sizeof header) && write_all(file.get(), data.data(), data.size());
      if (!file.close() || !whole || std::rename(part.c_str(), path_.c_str()) != 0) unlink(part.c_str());
    } catch (const std::exception&) {
    }
  }

 private:
  // Before the data. The file is for this machine alone, so numbers have its byte order.
  struct Header {
    char magic[8];
    uint64_t bytes, digest;  // of the data
    uint64_t key;            // of the plugin, device, driver and build
  };
  static constexpr char kMagic[8] = {'p', 'l', 'u', 'g', 'c', 'a', 'c', '1'};

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

  // FNV-1a; a text ends with its length, so that neighbouring texts do not run into each other.
  static uint64_t digest_of(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return (hash ^ text.size()) * 0x100000001b3;
  }
  static bool is_ours(const struct stat& about) {
    const bool is_private = S_ISREG(about.st_mode) && about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
    return is_private && about.st_size >= 0 && static_cast<uint64_t>(about.st_size) <= sizeof(Header) + kMostBytes;
  }
  static bool read_all(int file, void* to, size_t bytes) {
    for (char* at = static_cast<char*>(to); bytes;) {
      const ssize_t got = ::read(file, at, bytes);
      if (got <= 0) return false;
      at += got;
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }
  static bool write_all(int file, const void* from, size_t bytes) {
    for (const char* at = static_cast<const char*>(from); bytes;) {
      const ssize_t put = ::write(file, at, bytes);
      if (put <= 0) return false;
      at += put;
      bytes -= static_cast<size_t>(put);
    }
    return true;
  }
  static std::filesystem::path directory_of(const char* given) {
    if (given) return std::strcmp(given, "off") == 0 ? std::filesystem::path() : std::filesystem::path(given);
    for (const auto& [variable, below] : {std::pair("XDG_CACHE_HOME", "plugrad"), std::pair("HOME", ".cache/plugrad")})
      if (const char* base = secure_getenv(variable); base && *base == '/') return std::filesystem::path(base) / below;
    return {};
  }

  uint64_t key_ = 0;
  std::string path_;
};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
