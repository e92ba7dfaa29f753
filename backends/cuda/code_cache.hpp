// The code of compiled fusions, for later processes: a file in the user's cache directory for each architecture and version
// of NVRTC.
#pragma once
#include <plugrad/sdk/cache.hpp>

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plugrad::cuda {

class CodeCache {
 public:
  // Beyond these bytes, processes that compile remove the least recently used code.
  static constexpr uint64_t kMostBytes = 32 << 20;

  // build: the build of the plugin; another build does not read the file, since sources include the plugin's headers.
  // directory: as DeviceCache's. pause: between writes, because a write costs up to 0.1 s.
  CodeCache(const std::string& plugin, const std::string& architecture, const std::string& compiler,
            const std::string& build, const char* directory, std::chrono::milliseconds pause = std::chrono::seconds(1));
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  // Returns the code of exactly this source, from this process or an earlier one; nothing if there is none. [any]
  std::vector<char> find(const std::string& source);
  // Keeps the code, in place of earlier code of this source. Writes it at once if the last write is long ago; otherwise the
  // next write of this cache contains it. [any]
  void add(const std::string& source, std::span<const char> code);
  // Writes the file, with what other processes have written meanwhile, if code was added since the last write. [any]
  void write();
  // Writes the files of all caches of the process. [any]
  static void write_all() noexcept;

 private:
  struct Entry {
    std::string source;
    std::vector<char> code;
    uint64_t bytes() const { return source.size() + code.size(); }
  };
  using Entries = std::deque<Entry>;  // the last used last

  static std::mutex& all_mutex();
  static std::vector<CodeCache*>& all();  // all_mutex() held
  void read_once();                       // mutex_ held
  static Entries parsed(std::span<const char> data);
  static std::vector<char> text_of(const Entries& entries);
  static void put(Entries& entries, Entry entry);
  static void trim(Entries& entries);

  const DeviceCache file_;
  const std::chrono::milliseconds pause_;
  std::mutex mutex_;  // not held while the file is written
  bool is_read_ = false, is_changed_ = false;
  Entries entries_;
  std::mutex write_mutex_;
  std::optional<std::chrono::steady_clock::time_point> written_;
};

}  // namespace plugrad::cuda
