#include <sdk/conformance/message.hpp>

#include <cstdint>
#include <cstring>

namespace plugrad::conformance {
namespace {

void put_number(std::string& bytes, size_t number) {
  const auto n = static_cast<uint32_t>(number);
  bytes.append(reinterpret_cast<const char*>(&n), sizeof n);
}

// Reads from the front of a text; fails for good where too few bytes are left.
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

}  // namespace

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
