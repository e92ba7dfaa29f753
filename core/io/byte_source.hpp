// Reads the bytes of a file in order, and decompresses gzip on request.
#pragma once
#include <core/io/opened_file.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plugrad::io {

enum class Packing { plain, gzip_or_plain };

// Not thread-safe. Each function throws Error (io_error) with the path.
class ByteSource {
 public:
  // Opens a regular file. `hint` ends the message where the file does not exist.
  ByteSource(const std::string& path, Packing packing, const std::string& hint = "");
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Reads up to count bytes; fewer only at the end.
  size_t read(void* bytes, size_t count);
  [[noreturn]] void fail(const std::string& what) const { file_.fail(what); }

 private:
  struct Inflate;
  void refill();
  size_t inflate(uint8_t* bytes, size_t count);
  void next_member();

  OpenedFile file_;
  uint64_t offset_ = 0;  // of the file's first byte not yet in packed_
  std::vector<uint8_t> packed_;
  size_t next_ = 0;                   // the first unused byte of packed_
  std::unique_ptr<Inflate> inflate_;  // null for a plain file
};

}  // namespace plugrad::io
