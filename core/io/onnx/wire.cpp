#include <core/io/onnx/wire.hpp>

#include <algorithm>

namespace plugrad::io::onnx {

void WireReader::fail(const std::string& what) const {
  file_.fail("is not an ONNX file or is damaged: before byte " + std::to_string(position()) + " " + what);
}

void WireReader::refill() {
  constexpr size_t kChunk = size_t{1} << 16;
  start_ = position();
  next_ = 0;
  buffer_.resize(kChunk);
  buffer_.resize(file_.read_some(start_, buffer_.data(), kChunk));
  if (buffer_.empty()) file_.fail("was cut short while it was read");
}

void WireReader::read(void* bytes, uint64_t count) {
  if (count > end_ - position()) fail("a field is longer than its message");
  char* out = static_cast<char*>(bytes);
  while (count) {
    if (next_ == buffer_.size()) refill();
    const size_t part = static_cast<size_t>(std::min<uint64_t>(count, buffer_.size() - next_));
    std::memcpy(out, buffer_.data() + next_, part);
    next_ += part;
    out += part;
    count -= part;
  }
}

void WireReader::skip_bytes(uint64_t count) {
  if (count > end_ - position()) fail("a field is longer than its message");
  if (count <= buffer_.size() - next_) {
    next_ += static_cast<size_t>(count);
    return;
  }
  start_ = position() + count;
  buffer_.clear();
  next_ = 0;
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const uint64_t bits = byte();
    if (shift == 63 && bits > 1) break;
    value |= (bits & 127) << shift;
    if (bits < 128) return value;
  }
  fail("a number is too long");
}

bool WireReader::next() {
  if (position() == end_) return false;
  const uint64_t tag = varint();
  field_ = tag >> 3;
  wire_ = tag & 7;
  if (!field_ || field_ >= uint64_t{1} << 29) fail("a field has an invalid number");
  return true;
}

void WireReader::expect(uint64_t wire) const {
  if (wire_ != wire) fail("field " + std::to_string(field_) + " has another wire type than ONNX's");
}

uint64_t WireReader::length() {
  expect(kBytes);
  const uint64_t bytes = varint();
  if (bytes > end_ - position()) fail("a field is longer than its message");
  return bytes;
}

int64_t WireReader::integer() {
  expect(kVarint);
  return static_cast<int64_t>(varint());
}

float WireReader::real() {
  expect(kFour);
  return fixed<float>();
}

std::string WireReader::text() {
  std::string text(static_cast<size_t>(length()), '\0');
  read(text.data(), text.size());
  return text;
}

Place WireReader::place() {
  const uint64_t bytes = length();
  const Place place{position(), bytes};
  skip_bytes(bytes);
  return place;
}

void WireReader::integers(std::vector<int64_t>& all) {
  if (wire_ == kVarint) {
    all.push_back(static_cast<int64_t>(varint()));
    return;
  }
  const uint64_t outer = end_, bytes = length();
  end_ = position() + bytes;
  while (position() != end_) all.push_back(static_cast<int64_t>(varint()));
  end_ = outer;
}

void WireReader::skip() {
  if (wire_ == kVarint) varint();
  else if (wire_ == kEight) skip_bytes(8);
  else if (wire_ == kBytes) skip_bytes(length());
  else if (wire_ == kFour) skip_bytes(4);
  else fail("field " + std::to_string(field_) + " has an unknown wire type");
}

}  // namespace plugrad::io::onnx
