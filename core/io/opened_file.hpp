// A regular file, open for reading its bytes at any offset.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace plugrad::io {

// Const methods may be called by several threads at once. Each method throws Error (io_error) with the path.
class OpenedFile {
 public:
  // `hint` ends the message where the file cannot be opened.
  explicit OpenedFile(const std::string& path, const std::string& hint = "");
  ~OpenedFile();
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // in bytes, when the file was opened
  // Reads up to `count` bytes at `offset`, and returns their number; fewer only at the end.
  size_t read_some(uint64_t offset, void* bytes, size_t count) const;
  // Reads exactly `count` bytes at `offset`. The caller has compared them with size(): a shorter file was cut since.
  void read(uint64_t offset, void* bytes, size_t count) const;
  // Maps `count` bytes at `offset`, a multiple of the page size; writes stay in this process. Returns null where the system
  // refuses. The caller unmaps them, also after this object's end.
  void* map(uint64_t offset, size_t count) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace plugrad::io
