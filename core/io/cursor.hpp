// Reads the little-endian values at the start of a binary file, in order.
#pragma once
#include <core/io/opened_file.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace plugrad::io {

static_assert(std::endian::native == std::endian::little, "values are little-endian in the file and on the host");

// Each reading method throws Error (io_error) where the file ends too early.
class Cursor {
 public:
  explicit Cursor(const OpenedFile& file) : file_(file) {}

  const OpenedFile& file() const { return file_; }
  uint64_t position() const { return start_ + next_; }
  uint64_t left() const { return file_.size() - position(); }

  template <class T> T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    read(&value, sizeof value);
    return value;
  }
  void read(void* bytes, size_t count) {
    char* out = static_cast<char*>(bytes);
    if (count > left()) file_.fail("is cut short: it ends inside its header, at byte " + std::to_string(file_.size()));
    while (count > 0) {
      if (next_ == buffer_.size()) refill();
      const size_t part = std::min(count, buffer_.size() - next_);
      std::memcpy(out, buffer_.data() + next_, part);
      next_ += part;
      out += part;
      count -= part;
    }
  }
  // Reads `length` bytes. If the file has fewer bytes, throws before it allocates memory for them.
  std::string text(uint64_t length) {
    if (length > left()) {
      file_.fail("is cut short or damaged: at byte " + std::to_string(position()) + " it promises a text of " +
                 std::to_string(length) + " bytes, but " + std::to_string(left()) + " are left");
    }
    std::string bytes(static_cast<size_t>(length), '\0');
    read(bytes.data(), bytes.size());
    return bytes;
  }

 private:
  void refill() {
    constexpr size_t kChunk = size_t{1} << 16;
    start_ += next_;
    next_ = 0;
    buffer_.resize(kChunk);
    buffer_.resize(file_.read_some(start_, buffer_.data(), kChunk));
    if (buffer_.empty()) file_.fail("was cut short while it was read");
  }

  const OpenedFile& file_;
  std::vector<char> buffer_;
  uint64_t start_ = 0;  // the offset of the buffer's first byte in the file
  size_t next_ = 0;     // the first unused byte of the buffer
};

}  // namespace plugrad::io
