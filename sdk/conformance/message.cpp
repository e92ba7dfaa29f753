#include <sdk/conformance/message.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace plugrad::conformance {
namespace {

void put_number(std::string& bytes, size_t number) {
  const auto n = static_cast<uint32_t>(number);
  bytes.append(reinterpret_cast<const char*>(&n), sizeof n);
}

// Reads from the front of a text; once too few bytes are left, all later reads fail as well.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  uint32_t number() {
    uint32_t n = 0;
    if (const std::string part = text(sizeof n); good_) std::memcpy(&n, part.data(), sizeof n);
    return n;
  }
  std::string text(size_t size) {
    if (!good_ || size > bytes_.size() - at_) {
      good_ = false;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  bool good() const { return good_; }
  size_t at() const { return at_; }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

// The length of the UTF-8 sequence at the start of the text, or 0 (RFC 3629; overlong forms and surrogates do no harm here).
size_t sequence(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      if ((at(i) & 0xc0) != 0x80) return false;
    return true;
  };
  const unsigned first = at(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : (first & 0xf0) == 0xe0        ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  return length && continues(1, length) ? length : 0;
}

}  // namespace

std::string readable(const std::string& text) {
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence(std::string_view(text).substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    if (!length || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) shown += '?';
    else shown += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return shown;
}

std::string encoded(const Message& message) {
  std::string bytes(1, static_cast<char>(message.kind));
  put_number(bytes, message.fields.size());
  for (const std::string& field : message.fields) {
    put_number(bytes, field.size());
    bytes += field;
  }
  return bytes;
}

std::optional<Message> take_message(std::string& bytes) {
  Reader reader(bytes);
  const std::string kind = reader.text(1);
  if (!reader.good()) return std::nullopt;
  Message message{static_cast<Say>(kind[0]), {}};
  for (uint32_t left = reader.number(); left > 0 && reader.good(); --left)
    message.fields.push_back(reader.text(reader.number()));
  if (!reader.good()) return std::nullopt;
  bytes.erase(0, reader.at());
  return message;
}

}  // namespace plugrad::conformance
