// The code of compiled fusions, for later processes: a file in the user's cache directory for each architecture and version
// of NVRTC.
#pragma once
#include <plugrad/sdk/cache.hpp>

#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace plugrad::cuda {

class CodeCache {
 public:
  static constexpr uint64_t kMostBytes = 32 << 20;  // beyond them, the oldest code goes

  // directory: as DeviceCache's. Another build of the plugin does not read the file, since sources include its headers.
  CodeCache(const std::string& plugin, const std::string& architecture, const std::string& compiler, const char* directory)
      : file_(plugin, architecture, compiler, build_of_plugin(), directory) {}

  // Returns the code of exactly this source, from this process or an earlier one; nothing if there is none. [any]
  std::vector<char> find(const std::string& source);
  // Keeps the code, in place of earlier code of this source, and writes the file, with what other processes have written
  // meanwhile. [any]
  void add(const std::string& source, std::span<const char> code);

 private:
  struct Entry {
    std::string source;
    std::vector<char> code;
    uint64_t bytes() const { return source.size() + code.size(); }
  };
  using Entries = std::deque<Entry>;  // the newest last

  void read_once();
  static Entries parsed(std::span<const char> data);
  static std::vector<char> text_of(const Entries& entries);
  static void put(Entries& entries, Entry entry);

  const DeviceCache file_;
  std::mutex mutex_;
  bool is_read_ = false;
  Entries entries_;
};

}  // namespace plugrad::cuda
