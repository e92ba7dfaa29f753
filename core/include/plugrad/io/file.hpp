// Files that are either the old one or the new one, whole, whatever happens in between.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace plugrad::io {

// A file that appears under its name only with commit(): written beside it under another name, synced, renamed, and its
// folder synced. Without commit() nothing is left behind. Symbolic links are followed: what they point to is replaced, and
// keeps its permissions. A process with a limit on file sizes must ignore SIGXFSZ to get the error instead of the signal.
// Not thread-safe; different processes may write one path: the last to commit wins.
// Each function throws Error (io_error), which names the path, the system's reason, and what became of the old file.
class PLUGRAD_API AtomicFile {
 public:
  // The folder must exist; the path must be free or a regular file.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  [[noreturn]] void fail(const std::string& what, int error);

  std::string name_;       // as the caller wrote it, for messages
  std::string path_;       // with links resolved
  std::string temporary_;  // empty once it is gone
  int descriptor_ = -1;
};

// The whole of a file in one call.
PLUGRAD_API void write_file(const std::string& path, std::string_view contents);

}  // namespace plugrad::io
