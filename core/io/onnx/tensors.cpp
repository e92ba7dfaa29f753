#include <core/io/mapped_tensor.hpp>
#include <core/io/onnx/tensors.hpp>
#include <core/io/quote.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>

namespace plugrad::io::onnx {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kPart = int64_t{1} << 22;  // bytes that are copied at a time

[[noreturn]] void damaged(const OpenedFile& file, const TensorMessage& tensor, const std::string& what) {
  file.fail("has a tensor " + quote(tensor.name) + " " + what);
}

Shape shape_of(const OpenedFile& file, const TensorMessage& tensor) {
  if (tensor.dims.size() > PLUGRAD_MAX_RANK)
    damaged(file, tensor,
            "of rank " + std::to_string(tensor.dims.size()) + "; at most " + std::to_string(PLUGRAD_MAX_RANK) +
                " are supported");
  int64_t count = 1;
  for (const int64_t extent : tensor.dims) {
    if (extent < 0) damaged(file, tensor, "of the extent " + std::to_string(extent));
    if (extent && count > (int64_t{1} << 48) / extent) damaged(file, tensor, "with more elements than a file can hold");
    count *= extent ? extent : 1;
  }
  return Shape(tensor.dims);
}

int64_t entry_number(const OpenedFile& file, const TensorMessage& tensor, const std::string& key, int64_t absent) {
  for (const auto& [name, text] : tensor.external_data) {
    if (name != key) continue;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 0)
      damaged(file, tensor, "whose external data have the " + key + " " + quote(text) + ": a number is expected");
    return number;
  }
  return absent;
}

// The path of the external data: each part of the location below the file's folder is a folder or a file, not a link.
std::string external_path(const OpenedFile& file, const TensorMessage& tensor) {
  std::string location;
  for (const auto& [name, text] : tensor.external_data)
    if (name == "location") location = text;
  const std::string outside = "whose external data are at " + quote(location) +
                              ": a file in the model's folder or below is expected, without '..' and links";
  if (location.empty() || location.find('\0') != location.npos || fs::path(location).is_absolute())
    damaged(file, tensor, outside);
  fs::path path = fs::path(file.path()).parent_path();
  if (path.empty()) path = ".";
  for (const fs::path& part : fs::path(location)) {
    if (part == ".." || part.empty()) damaged(file, tensor, outside);
    if (part == ".") continue;
    path /= part;
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(path, ignored))) damaged(file, tensor, outside);
  }
  return path.string();
}

template <class To, class From> std::vector<char> converted(const std::vector<From>& from) {
  std::vector<char> bytes(from.size() * sizeof(To));
  for (size_t i = 0; i < from.size(); ++i) {
    const To value = static_cast<To>(from[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof value);
  }
  return bytes;
}

// The elements of the typed fields, as raw data.
std::vector<char> typed_bytes(const TensorMessage& tensor, ElementType type) {
  if (type == ElementType::f32) return converted<float>(tensor.floats);
  if (type == ElementType::f64) return converted<double>(tensor.doubles);
  switch (std::max(bits_of(type), 8)) {
    case 8: return converted<uint8_t>(tensor.integers);
    case 16: return converted<uint16_t>(tensor.integers);
    case 32: return converted<uint32_t>(tensor.integers);
    default: return converted<uint64_t>(tensor.integers);
  }
}

// Elements of less than a byte, the first in the lowest bits.
std::vector<char> unpacked(const std::vector<char>& raw, size_t count, int bits, bool is_signed) {
  std::vector<char> all(count);
  const int per_byte = 8 / bits, mask = (1 << bits) - 1;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = i / static_cast<size_t>(per_byte);
    int value = static_cast<uint8_t>(raw[at]) >> (static_cast<int>(i % static_cast<size_t>(per_byte)) * bits) & mask;
    if (is_signed && value >> (bits - 1)) value -= mask + 1;
    all[i] = static_cast<char>(value);
  }
  return all;
}

template <class From, class To> std::vector<char> widened(const std::vector<char>& raw) {
  std::vector<From> from(raw.size() / sizeof(From));
  if (!from.empty()) std::memcpy(from.data(), raw.data(), raw.size());
  return converted<To>(from);
}

// The elements of a tensor as they are in a file: either in a part of a file, or on the host.
struct RawElements {
  const OpenedFile* file = nullptr;
  std::unique_ptr<OpenedFile> external;
  uint64_t begin = 0, bytes = 0;
  std::vector<char> typed;

  void read(uint64_t skipped, void* to, uint64_t count) const {
    if (file) file->read(begin + skipped, to, count);
    else std::memcpy(to, typed.data() + skipped, count);
  }
};

RawElements external_elements(const OpenedFile& file, const TensorMessage& tensor, uint64_t bytes) {
  RawElements raw;
  raw.external = std::make_unique<OpenedFile>(external_path(file, tensor), "it holds the external data of " + file.path());
  raw.file = raw.external.get();
  raw.begin = static_cast<uint64_t>(entry_number(file, tensor, "offset", 0));
  raw.bytes = static_cast<uint64_t>(entry_number(file, tensor, "length", static_cast<int64_t>(bytes)));
  if (raw.bytes != bytes || raw.begin > raw.file->size() || bytes > raw.file->size() - raw.begin)
    damaged(file, tensor,
            "of " + std::to_string(bytes) + " bytes; its external data are " + std::to_string(raw.bytes) +
                " bytes from byte " + std::to_string(raw.begin) + " of " + raw.file->path() + ", which has " +
                std::to_string(raw.file->size()));
  return raw;
}

RawElements raw_elements(const OpenedFile& file, const TensorMessage& tensor, ElementType type, const Shape& shape) {
  const uint64_t bytes = (static_cast<uint64_t>(shape.count()) * static_cast<uint64_t>(bits_of(type)) + 7) / 8;
  RawElements raw;
  if (tensor.external) return external_elements(file, tensor, bytes);
  if (tensor.raw) {
    raw.file = &file;
    raw.begin = tensor.raw->begin;
    raw.bytes = tensor.raw->bytes;
  } else {
    raw.typed = typed_bytes(tensor, type);
    raw.bytes = raw.typed.size();
  }
  if (raw.bytes != bytes)
    damaged(file, tensor,
            "of the shape " + shape.text() + " and " + element_name(type) + ": " + std::to_string(bytes) +
                " bytes are expected, not " + std::to_string(raw.bytes));
  return raw;
}

// Copies a large tensor in parts, so that the host does not hold it twice.
Tensor read_in_parts(const RawElements& raw, DType dtype, const Shape& shape, Device device) {
  const Tensor whole = empty(shape, dtype, device), flat = reshape(whole, {shape.count()});
  const int64_t part = kPart / item_size(dtype);
  std::vector<char> bytes;
  for (int64_t begin = 0; begin < shape.count(); begin += part) {
    const int64_t count = std::min(part, shape.count() - begin);
    bytes.resize(static_cast<size_t>(count * item_size(dtype)));
    raw.read(static_cast<uint64_t>(begin * item_size(dtype)), bytes.data(), bytes.size());
    slice(flat, 0, begin, begin + count)
        .copy_(Tensor::from_host(bytes.data(), static_cast<size_t>(count), dtype, {count}, device));
  }
  return whole;
}
}  // namespace

Tensor read_tensor(const OpenedFile& file, const TensorMessage& tensor, Device device, bool mmap) {
  const ElementType type = static_cast<ElementType>(tensor.type);
  const auto dtype = carrier(type);
  if (!dtype) {
    throw Error(Code::unsupported, "[" + file.path() + "] tensor " + quote(tensor.name) + " has elements of " +
                                       element_name(type) + ", which are not supported");
  }
  const Shape shape = shape_of(file, tensor);
  const RawElements raw = raw_elements(file, tensor, type, shape);
  const bool plain = bits_of(type) == 8 * item_size(*dtype) && type != ElementType::boolean;
  if (plain && raw.file && mmap)
    if (std::optional<Tensor> mapped = mapped_tensor(*raw.file, raw.begin, *dtype, shape, device)) return *mapped;
  if (plain && raw.bytes > 2 * static_cast<uint64_t>(kPart)) return read_in_parts(raw, *dtype, shape, device);
  std::vector<char> bytes(raw.bytes);
  raw.read(0, bytes.data(), bytes.size());
  const size_t count = static_cast<size_t>(shape.count());
  if (bits_of(type) < 8) bytes = unpacked(bytes, count, bits_of(type), range_of(type)->low < 0);
  if (type == ElementType::u16) bytes = widened<uint16_t, int32_t>(bytes);
  if (type == ElementType::u32) bytes = widened<uint32_t, int64_t>(bytes);
  if (type == ElementType::boolean)
    for (char& each : bytes) each = each != 0;
  return Tensor::from_host(bytes.data(), count, *dtype, shape, device);
}

}  // namespace plugrad::io::onnx
