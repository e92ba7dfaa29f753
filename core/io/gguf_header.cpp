#include <core/io/gguf_format.hpp>

#include <core/io/cursor.hpp>
#include <core/io/ggml_types.hpp>
#include <core/io/quote.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace plugrad::io {
namespace {

enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

constexpr int64_t kDefaultAlignment = 32;
constexpr const char* kAlignmentKey = "general.alignment";

class HeaderParser {
 public:
  explicit HeaderParser(const OpenedFile& file) : cursor_(file) {}

  GgufHeader parse() {
    read_version();
    // The least sizes of a tensor's entry and of an entry of the metadata, in bytes.
    const uint64_t tensors = read_count(24, "tensors"), entries = read_count(13, "entries of metadata");
    for (uint64_t i = 0; i < entries; ++i) read_entry();
    const uint64_t alignment = read_alignment();
    for (uint64_t i = 0; i < tensors; ++i) read_tensor(alignment);
    place(alignment);
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { cursor_.file().fail("is not a valid GGUF file: " + what); }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    fail("tensor " + quote(name) + " " + what);
  }

  void read_version() {
    constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
    if (cursor_.file().size() < 24) fail("it is shorter than the 24 bytes with which such a file begins");
    if (cursor_.number<uint32_t>() != kMagic) fail("it does not begin with the letters GGUF");
    header_.version = cursor_.number<uint32_t>();
    if (header_.version == 2 || header_.version == 3) return;
    if (header_.version != 0 && (header_.version & 0xffff) == 0) {
      fail("its numbers are big-endian; convert it to little-endian with the script gguf_convert_endian of PyPI's gguf");
    }
    fail("it has version " + std::to_string(header_.version) +
         "; versions 2 and 3 can be read, and llama.cpp converts others");
  }

  uint64_t read_count(uint64_t least_bytes, const std::string& things) {
    const uint64_t count = cursor_.number<uint64_t>();
    check_count(count, least_bytes, things);
    return count;
  }
  void check_count(uint64_t count, uint64_t least_bytes, const std::string& things) const {
    if (count <= cursor_.left() / least_bytes) return;
    fail("it claims " + std::to_string(count) + " " + things + ", for which the " + std::to_string(cursor_.left()) +
         " bytes that follow are too few");
  }

  std::string read_text() { return cursor_.text(cursor_.number<uint64_t>()); }

  void read_entry() {
    std::string key = read_text();
    constexpr size_t kMostBytes = 65535;
    if (key.size() > kMostBytes) fail("the key " + quote(key) + " is longer than 65535 bytes");
    GgufValue value = read_value(key, cursor_.number<uint32_t>());
    if (!header_.metadata.emplace(key, std::move(value)).second) fail("it has the key " + quote(key) + " twice");
  }

  bool read_bool(const std::string& key) {
    const uint8_t byte = cursor_.number<uint8_t>();
    if (byte > 1) fail("the bool of the key " + quote(key) + " is " + std::to_string(byte) + ", neither 0 nor 1");
    return byte == 1;
  }

  GgufValue read_value(const std::string& key, uint32_t type) {
    switch (static_cast<ValueType>(type)) {
      case ValueType::u8: return {int64_t{cursor_.number<uint8_t>()}};
      case ValueType::i8: return {int64_t{cursor_.number<int8_t>()}};
      case ValueType::u16: return {int64_t{cursor_.number<uint16_t>()}};
      case ValueType::i16: return {int64_t{cursor_.number<int16_t>()}};
      case ValueType::u32: return {int64_t{cursor_.number<uint32_t>()}};
      case ValueType::i32: return {int64_t{cursor_.number<int32_t>()}};
      case ValueType::i64: return {cursor_.number<int64_t>()};
      case ValueType::u64: return {cursor_.number<uint64_t>()};
      case ValueType::f32: return {double{cursor_.number<float>()}};
      case ValueType::f64: return {cursor_.number<double>()};
      case ValueType::boolean: return {read_bool(key)};
      case ValueType::text: return {read_text()};
      case ValueType::array: return read_array(key, 1);
    }
    fail("the key " + quote(key) + " has the type " + std::to_string(type) + "; the format has the types 0 .. 12");
  }

  template <class Stored, class Read> GgufValue list(const std::string& key, uint64_t least_bytes, Read read) {
    const uint64_t count = read_count(least_bytes, "values of the key " + quote(key));
    std::vector<Stored> values;
    values.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) values.push_back(read());
    return {std::move(values)};
  }
  template <class Stored, class T> GgufValue numbers(const std::string& key) {
    return list<Stored>(key, sizeof(T), [&] { return static_cast<Stored>(cursor_.number<T>()); });
  }

  GgufValue read_array(const std::string& key, int depth) {
    constexpr int kDepth = 4;
    if (depth > kDepth) fail("the arrays of the key " + quote(key) + " are nested more than 4 deep");
    const uint32_t type = cursor_.number<uint32_t>();
    switch (static_cast<ValueType>(type)) {
      case ValueType::u8: return numbers<int64_t, uint8_t>(key);
      case ValueType::i8: return numbers<int64_t, int8_t>(key);
      case ValueType::u16: return numbers<int64_t, uint16_t>(key);
      case ValueType::i16: return numbers<int64_t, int16_t>(key);
      case ValueType::u32: return numbers<int64_t, uint32_t>(key);
      case ValueType::i32: return numbers<int64_t, int32_t>(key);
      case ValueType::i64: return numbers<int64_t, int64_t>(key);
      case ValueType::u64: return numbers<uint64_t, uint64_t>(key);
      case ValueType::f32: return numbers<double, float>(key);
      case ValueType::f64: return numbers<double, double>(key);
      case ValueType::boolean: return list<bool>(key, 1, [&] { return read_bool(key); });
      case ValueType::text: return list<std::string>(key, sizeof(uint64_t), [&] { return read_text(); });
      case ValueType::array: return list<GgufValue>(key, 12, [&] { return read_array(key, depth + 1); });
    }
    fail("the array of the key " + quote(key) + " has values of the type " + std::to_string(type) +
         "; the format has the types 0 .. 12");
  }

  uint64_t read_alignment() const {
    const auto found = header_.metadata.find(kAlignmentKey);
    if (found == header_.metadata.end()) return kDefaultAlignment;
    const int64_t* alignment = std::get_if<int64_t>(&found->second.value);
    if (!alignment || *alignment < 1 || (*alignment & (*alignment - 1)) != 0 || *alignment > UINT32_MAX) {
      fail(std::string(kAlignmentKey) + " is not a power of two of type u32");
    }
    return static_cast<uint64_t>(*alignment);
  }

  void read_tensor(uint64_t alignment) {
    std::string name = read_text();
    const std::vector<uint64_t> extents = read_extents(name);
    const uint32_t id = cursor_.number<uint32_t>();
    const GgmlType* type = ggml_type(id);
    if (!type)
      fail(name,
           "has the type " + std::to_string(id) + ", which ggml does not use; these can be read: " + readable_ggml_types());
    GgufTensor tensor = {type->name, {}, cursor_.number<uint64_t>(), 0, type->block, type->block_bytes};
    if (tensor.begin % alignment != 0) {
      fail(name, "begins at byte " + std::to_string(tensor.begin) + " of the data, which is not a multiple of " +
                     std::to_string(alignment));
    }
    for (const uint64_t extent : extents) tensor.shape.push_back(static_cast<int64_t>(extent));
    std::ranges::reverse(tensor.shape);
    tensor.bytes = bytes_of(name, tensor);
    header_.names.push_back(name);
    if (!header_.tensors.emplace(name, std::move(tensor)).second) fail("it has the tensor " + quote(name) + " twice");
  }

  std::vector<uint64_t> read_extents(const std::string& name) {
    const uint32_t rank = cursor_.number<uint32_t>();
    if (rank > PLUGRAD_MAX_RANK) fail(name, "has " + std::to_string(rank) + " dimensions; at most 8 are supported");
    std::vector<uint64_t> extents(rank);
    for (uint64_t& extent : extents) {
      extent = cursor_.number<uint64_t>();
      if (extent > std::numeric_limits<int64_t>::max()) fail(name, "has an extent of 2^63 or more");
    }
    return extents;
  }

  uint64_t bytes_of(const std::string& name, const GgufTensor& tensor) const {
    const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % tensor.block != 0) {
      fail(name, "has rows of " + std::to_string(row) + " elements, but a block of type " + tensor.type + " has " +
                     std::to_string(tensor.block));
    }
    // Strides are products of the remaining extents, even where an extent is 0, so these products must not overflow either.
    int64_t count = 1, bytes = 0;
    bool overflow = false;
    for (const int64_t extent : tensor.shape) overflow |= extent != 0 && __builtin_mul_overflow(count, extent, &count);
    // A decoded element takes 4 bytes, and an element never more than 8 bytes.
    overflow |= __builtin_mul_overflow(count, int64_t{8}, &bytes);
    if (overflow) fail(name, "of shape " + tensor.shape.text() + " takes more than 2^63 bytes");
    return static_cast<uint64_t>(tensor.shape.count() / tensor.block * tensor.block_bytes);
  }

  // Turns offsets in the data into offsets in the file, and checks that the tensors are inside the file without overlap.
  void place(uint64_t alignment) {
    const uint64_t size = cursor_.file().size();
    const uint64_t data = (cursor_.position() + alignment - 1) / alignment * alignment,
                   available = size > data ? size - data : 0;
    std::vector<std::pair<const std::string*, GgufTensor*>> order;
    for (auto& [name, tensor] : header_.tensors) order.emplace_back(&name, &tensor);
    std::ranges::sort(order, {}, [](const auto& item) { return std::pair(item.second->begin, item.second->bytes); });
    uint64_t end = 0;
    for (const auto& [name, tensor] : order) {
      if (tensor->begin > available || tensor->bytes > available - tensor->begin) {
        fail(*name, "takes " + std::to_string(tensor->bytes) + " bytes from byte " + std::to_string(tensor->begin) +
                        " of the data on, but there are " + std::to_string(available) + "; the file may be cut short");
      }
      if (tensor->begin < end) fail(*name, "overlaps the one before it");
      end = tensor->begin + tensor->bytes;
      tensor->begin += data;
    }
  }

  Cursor cursor_;
  GgufHeader header_;
};

}  // namespace

GgufHeader read_gguf_header(const OpenedFile& file) { return HeaderParser(file).parse(); }

}  // namespace plugrad::io
