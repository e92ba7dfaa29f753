// Reads protobuf's wire format from a file: https://protobuf.dev/programming-guides/encoding. A library of protobuf's is not
// linked: two versions of one collide in a user's process.
#pragma once
#include <core/io/opened_file.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace plugrad::io::onnx {

// Bytes of the file that stay in the file until they are needed.
struct Place {
  uint64_t begin = 0, bytes = 0;
};

// Reads the fields of nested messages in order, with a buffer of its own. All methods throw Error (io_error) with the path
// and the position for bytes that are not protobuf.
class WireReader {
 public:
  explicit WireReader(const OpenedFile& file) : file_(file), end_(file.size()) {}

  // Reads the number of the message's next field; false at the end of the message.
  bool next();
  uint64_t field() const { return field_; }

  int64_t integer();
  float real();
  std::string text();
  Place place();  // of a field of bytes, which is skipped
  void skip();
  // Appends repeated numbers: packed, or one of them.
  void integers(std::vector<int64_t>& all);
  template <class T> void reals(std::vector<T>& all) {
    if (wire_ != kBytes) {
      expect(sizeof(T) == 4 ? kFour : kEight);
      all.push_back(fixed<T>());
      return;
    }
    const uint64_t bytes = length();
    if (bytes % sizeof(T)) fail("numbers are cut off");
    const size_t before = all.size();
    all.resize(before + bytes / sizeof(T));
    read(all.data() + before, bytes);
  }
  // Calls read_field for each field of a message that is this message's field.
  template <class F> void message(F&& read_field) {
    const uint64_t outer = end_, bytes = length();
    if (++messages_ > kMostMessages) fail("there are over " + std::to_string(kMostMessages) + " messages");
    if (++depth_ > kMostDepth) fail("messages nest over " + std::to_string(kMostDepth) + " deep");
    end_ = position() + bytes;
    while (next()) read_field();
    end_ = outer;
    --depth_;
  }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  static constexpr uint64_t kVarint = 0, kEight = 1, kBytes = 2, kFour = 5;
  static constexpr int kMostDepth = 100;
  static constexpr uint64_t kMostMessages = 4'000'000;  // an empty message takes 100 times its two bytes in memory

  uint64_t position() const { return start_ + next_; }
  uint64_t varint();
  uint64_t length();  // of a field of bytes
  void expect(uint64_t wire) const;
  void read(void* bytes, uint64_t count);
  void skip_bytes(uint64_t count);
  uint8_t byte() {
    if (position() == end_) fail("a number is cut off");
    if (next_ == buffer_.size()) refill();
    return static_cast<uint8_t>(buffer_[next_++]);
  }
  template <class T> T fixed() {
    T value;
    read(&value, sizeof value);
    return value;
  }
  void refill();

  const OpenedFile& file_;
  uint64_t end_;  // of the current message
  std::vector<char> buffer_;
  uint64_t start_ = 0;  // the place of the buffer's first byte
  size_t next_ = 0;     // the first unread byte of the buffer
  uint64_t field_ = 0, wire_ = 0;
  uint64_t messages_ = 0;
  int depth_ = 0;
};
static_assert(std::endian::native == std::endian::little, "numbers are little-endian in the file and on the host");

}  // namespace plugrad::io::onnx
