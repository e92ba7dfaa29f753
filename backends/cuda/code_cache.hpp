// The code of compiled fusions, for later processes: a file in the user's cache directory for each architecture and version
// of NVRTC.
#pragma once
#include <plugrad/sdk/cache.hpp>

#include <chrono>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace plugrad::cuda {

class CodeCache {
 public:
  static constexpr uint64_t kMostBytes = 32 << 20;  // beyond them, the code that was used least recently goes

  // build: the build of the plugin; another build does not read the file, since sources include the plugin's headers.
  // directory: as DeviceCache's.
  CodeCache(const std::string& plugin, const std::string& architecture, const std::string& compiler,
            const std::string& build, const char* directory)
      : file_(plugin, architecture, compiler, build, directory) {}

  // Returns the code of exactly this source, from this process or an earlier one; nothing if there is none. [any]
  std::vector<char> find(const std::string& source);
  // Keeps the code, in place of earlier code of this source, for the next write(). [any]
  void add(const std::string& source, std::span<const char> code);
  // Writes the file, with what other processes have written meanwhile, if code was added since the last write. Between the
  // writes of a series of calls, of which only the last passes is_last, lies a second, because a write costs up to 0.1 s.
  // [any]
  void write(bool is_last);

 private:
  struct Entry {
    std::string source;
    std::vector<char> code;
    uint64_t bytes() const { return source.size() + code.size(); }
  };
  using Entries = std::deque<Entry>;  // the last used last

  void read_once();  // mutex_ held
  static Entries parsed(std::span<const char> data);
  static std::vector<char> text_of(const Entries& entries);
  static void put(Entries& entries, Entry entry);
  static void trim(Entries& entries);

  const DeviceCache file_;
  std::mutex mutex_;  // not held while the file is written
  bool is_read_ = false, is_changed_ = false;
  Entries entries_;
  std::mutex write_mutex_;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace plugrad::cuda
