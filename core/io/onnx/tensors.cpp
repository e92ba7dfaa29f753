#include <core/io/onnx/tensors.hpp>
#include <core/io/quote.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>

namespace plugrad::io::onnx {
namespace {
namespace fs = std::filesystem;

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

std::vector<char> external_bytes(const OpenedFile& file, const TensorMessage& tensor, uint64_t bytes) {
  const OpenedFile data(external_path(file, tensor), "; it holds the external data of " + file.path());
  const uint64_t begin = static_cast<uint64_t>(entry_number(file, tensor, "offset", 0));
  const uint64_t length = static_cast<uint64_t>(entry_number(file, tensor, "length", static_cast<int64_t>(bytes)));
  if (length != bytes || begin > data.size() || bytes > data.size() - begin)
    damaged(file, tensor,
            "of " + std::to_string(bytes) + " bytes; its external data are " + std::to_string(length) + " bytes from byte " +
                std::to_string(begin) + " of " + data.path() + ", which has " + std::to_string(data.size()));
  std::vector<char> all(bytes);
  data.read(begin, all.data(), all.size());
  return all;
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
}  // namespace

HostTensor read_host_tensor(const OpenedFile& file, const TensorMessage& tensor) {
  const ElementType type = static_cast<ElementType>(tensor.type);
  const auto dtype = carrier(type);
  if (!dtype) {
    throw Error(Code::unsupported, "[" + file.path() + "] tensor " + quote(tensor.name) + " has elements of " +
                                       element_name(type) + ", which are not supported");
  }
  const Shape shape = shape_of(file, tensor);
  const uint64_t count = static_cast<uint64_t>(shape.count());
  const uint64_t bytes = (count * static_cast<uint64_t>(bits_of(type)) + 7) / 8;
  std::vector<char> raw;
  if (tensor.external) raw = external_bytes(file, tensor, bytes);
  else if (!tensor.raw) raw = typed_bytes(tensor, type);
  else if (tensor.raw->bytes == bytes) {
    raw.resize(bytes);
    file.read(tensor.raw->begin, raw.data(), raw.size());
  }
  const uint64_t found = !tensor.external && tensor.raw ? tensor.raw->bytes : raw.size();
  if (found != bytes)
    damaged(file, tensor,
            "of the shape " + shape.text() + " and " + element_name(type) + ": " + std::to_string(bytes) +
                " bytes are expected, not " + std::to_string(found));
  if (bits_of(type) < 8) raw = unpacked(raw, count, bits_of(type), range_of(type)->low < 0);
  if (type == ElementType::u16) raw = widened<uint16_t, int32_t>(raw);
  if (type == ElementType::u32) raw = widened<uint32_t, int64_t>(raw);
  if (type == ElementType::boolean)
    for (char& each : raw) each = each != 0;
  return {*dtype, shape, std::move(raw)};
}

Tensor to_device(const HostTensor& tensor, Device device) {
  return Tensor::from_host(tensor.bytes.data(), static_cast<size_t>(tensor.shape.count()), tensor.dtype, tensor.shape,
                           device);
}

Tensor read_tensor(const OpenedFile& file, const TensorMessage& tensor, Device device) {
  return to_device(read_host_tensor(file, tensor), device);
}

}  // namespace plugrad::io::onnx
