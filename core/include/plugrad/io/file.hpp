// Files with atomic replacement: after a crash either the whole old file or the whole new file exists.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace plugrad::io {

// A file that appears under its name only at commit(). It writes to a temporary file in the same folder; commit() syncs and
// renames this file, and syncs the folder. Without commit() no file remains. It follows symbolic links, and the new file has
// the old file's permissions. A process with a file size limit must ignore SIGXFSZ to get the error instead of the signal.
// Not thread-safe. Different processes may write the same path: the last to commit wins. Each function throws Error
// (io_error) with the path, the system's reason, and the state of the old file.
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
  std::string temporary_;  // empty once it is renamed or removed
  int descriptor_ = -1;
};

// Writes a whole file in one call.
PLUGRAD_API void write_file(const std::string& path, std::string_view contents);

}  // namespace plugrad::io
