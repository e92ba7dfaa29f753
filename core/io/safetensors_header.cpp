#include <core/io/quote.hpp>
#include <core/io/safetensors_format.hpp>
#include <core/io/strict_json.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace plugrad::io {
namespace {

using Json = nlohmann::json;

class SafetensorsParser {
 public:
  SafetensorsParser(std::string path, uint64_t file_bytes) : path_(std::move(path)), file_bytes_(file_bytes) {}

  SafetensorsHeader parse(const std::string& text) {
    header_.data = kLengthBytes + text.size();
    if (text.empty() || text.front() != '{') fail("its header does not begin with '{'");
    constexpr int kDepth = 4;
    const Document document = parse_strictly(text, kDepth, [&](const std::string& what) { fail("its header " + what); });
    for (const auto& [name, value] : document.root().items()) {
      if (name == kMetadataKey) {
        read_metadata(value);
      } else {
        header_.tensors[name] = read_entry(name, value);
      }
    }
    check_cover();
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::io_error, "[" + path_ + "] is not a valid safetensors file: " + what);
  }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    fail("tensor " + quote(name) + " " + what);
  }

  void read_metadata(const Json& value) {
    if (!value.is_object()) fail("its __metadata__ is not a map");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("its metadata " + quote(key) + " is not text");
      header_.metadata[key] = text.get<std::string>();
    }
  }

  TensorEntry read_entry(const std::string& name, const Json& value) const {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
        !value.contains("data_offsets")) {
      fail(name, "must have exactly the fields dtype, shape and data_offsets");
    }
    TensorEntry entry;
    entry.dtype = read_dtype(name, value["dtype"]);
    entry.shape = read_shape(name, value["shape"]);
    const Json& offsets = value["data_offsets"];
    const bool two =
        offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
    if (!two) fail(name, "has data_offsets that are not two whole numbers");
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    check_bytes(name, entry);
    return entry;
  }

  DType read_dtype(const std::string& name, const Json& value) const {
    if (!value.is_string()) fail(name, "has a dtype that is not text");
    std::string known;
    for (const DType each : kEveryDType) {
      const DTypeInfo& info = *dtype_info(static_cast<uint8_t>(each));
      if (value.get_ref<const std::string&>() == info.name) return each;
      known += (known.empty() ? "" : ", ") + std::string(info.name);
    }
    fail(name, "has the dtype " + quote(value.get<std::string>()) + "; expected one of " + known);
  }

  Shape read_shape(const std::string& name, const Json& value) const {
    if (!value.is_array()) fail(name, "has a shape that is not a list");
    if (value.size() > PLUGRAD_MAX_RANK) {
      fail(name, "has " + std::to_string(value.size()) + " dimensions; at most " + std::to_string(PLUGRAD_MAX_RANK) +
                     " are supported");
    }
    Shape shape;
    for (const Json& extent : value) {
      const bool fits = extent.is_number_unsigned() && extent.get<uint64_t>() <= std::numeric_limits<int64_t>::max();
      if (!fits) fail(name, "has an extent that is not a whole number below 2^63");
      shape.push_back(extent.get<int64_t>());
    }
    return shape;
  }

  void check_bytes(const std::string& name, const TensorEntry& entry) const {
    const uint64_t available = file_bytes_ - header_.data;
    const std::string range = std::to_string(entry.begin) + " .. " + std::to_string(entry.end);
    if (entry.begin > entry.end || entry.end > available) {
      fail(name, "lies at bytes " + range + ", but there are " + std::to_string(available));
    }
    uint64_t bytes = static_cast<uint64_t>(item_size(entry.dtype));
    bool overflow = false;
    // Strides are products of the remaining extents, even where an extent is 0, so these products must not overflow either.
    for (const int64_t extent : entry.shape) {
      overflow |= extent != 0 && __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes);
    }
    overflow |= bytes > std::numeric_limits<int64_t>::max();
    if (std::ranges::find(entry.shape, 0) != entry.shape.end()) bytes = 0;
    if (overflow || bytes != entry.end - entry.begin) {
      fail(name, "has " + std::to_string(entry.end - entry.begin) + " bytes, but " + dtype_name(entry.dtype) + " of shape " +
                     entry.shape.text() + " takes " + (overflow ? "more than 2^63" : std::to_string(bytes)));
    }
  }

  void check_cover() const {
    std::vector<std::pair<const std::string*, const TensorEntry*>> order;
    for (const auto& [name, entry] : header_.tensors) order.emplace_back(&name, &entry);
    std::ranges::sort(order, {}, [](const auto& item) { return std::pair(item.second->begin, item.second->end); });
    uint64_t next = 0;
    for (const auto& [name, entry] : order) {
      if (entry->begin != next) {
        fail(*name,
             (entry->begin < next ? "overlaps the one before it: it begins at byte " : "leaves a gap: it begins at byte ") +
                 std::to_string(entry->begin) + ", expected " + std::to_string(next));
      }
      next = entry->end;
    }
    if (next != file_bytes_ - header_.data) {
      fail(std::to_string(file_bytes_ - header_.data - next) + " bytes after its last tensor belong to no tensor");
    }
  }

  std::string path_;
  uint64_t file_bytes_;
  SafetensorsHeader header_;
};

}  // namespace

SafetensorsHeader read_header(const OpenedFile& file) {
  std::array<uint8_t, kLengthBytes> length_bytes{};
  const auto fail = [&](const std::string& what) { file.fail("is not a valid safetensors file: " + what); };
  if (file.size() < kLengthBytes) fail("it is shorter than the 8 bytes of its length field");
  file.read(0, length_bytes.data(), kLengthBytes);
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{length_bytes[i]} << (8 * i);
  if (length > file.size() - kLengthBytes || length > kMaxHeaderBytes) {
    const std::string size = std::to_string(file.size());
    fail("it claims a header of " + std::to_string(length) + " bytes, but the whole file has " + size);
  }
  std::string text(length, '\0');
  file.read(kLengthBytes, text.data(), length);
  return SafetensorsParser(file.path(), file.size()).parse(text);
}

SafetensorsHeader read_safetensors_header(const std::string& path) { return read_header(OpenedFile(path)); }

}  // namespace plugrad::io
