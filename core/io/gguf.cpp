#include <core/io/ggml_types.hpp>
#include <core/io/gguf_format.hpp>
#include <core/io/quote.hpp>
#include <core/io/row_range.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/runtime/error.hpp>

#include <map>
#include <memory>

namespace plugrad::io {

struct GgufFile::State {
  explicit State(const std::string& path) : file(path), header(read_gguf_header(file)) {}

  template <class T> const T& entry(const std::string& key, const char* kind) const {
    const T* found = std::get_if<T>(&value(key).value);
    if (!found) file.fail("has metadata of the key " + quote(key) + " that are not " + kind);
    return *found;
  }
  const GgufValue& value(const std::string& key) const {
    const auto found = header.metadata.find(key);
    if (found == header.metadata.end()) file.fail("has no metadata of the key " + quote(key));
    return found->second;
  }
  const GgufTensor& info(const std::string& name) const {
    const auto found = header.tensors.find(name);
    if (found != header.tensors.end()) return found->second;
    throw Error(Code::invalid, "[" + file.path() + "] has no tensor " + quote(name) + ": keys() lists its " +
                                   std::to_string(header.tensors.size()) + " names");
  }
  std::vector<uint8_t> bytes(const GgufTensor& tensor, uint64_t skipped, int64_t count) const {
    std::vector<uint8_t> raw(static_cast<size_t>(count / tensor.block * tensor.block_bytes));
    file.read(tensor.begin + skipped, raw.data(), raw.size());
    return raw;
  }
  // Reads a tensor of this shape from `skipped` bytes after the start of `tensor`.
  Tensor read(const std::string& name, const GgufTensor& tensor, uint64_t skipped, const Shape& shape, Device device) const {
    const GgmlType& type = ggml_type(tensor.type);
    if (!type.readable()) {
      throw Error(Code::unsupported, "[" + file.path() + "] tensor " + quote(name) + " has the type " + type.name +
                                         "; these can be read: " + readable_ggml_types() + "; raw() returns its bytes");
    }
    const size_t count = static_cast<size_t>(shape.count());
    const std::vector<uint8_t> raw = bytes(tensor, skipped, shape.count());
    if (type.dtype) return Tensor::from_host(raw.data(), count, *type.dtype, shape, device);
    std::vector<float> elements(count);
    const uint8_t* block = raw.data();
    for (size_t at = 0; at < count; at += static_cast<size_t>(type.block)) {
      decode(type, block, elements.data() + at);
      block += type.block_bytes;
    }
    return Tensor::from_host(elements.data(), count, DType::f32, shape, device);
  }

  Quantized quantized(const std::string& name, const GgufTensor& tensor, Device device) const {
    const GgmlType& type = ggml_type(tensor.type);
    if (!type.codes.bits || tensor.shape.rank() != 2) {
      throw Error(Code::unsupported, "[" + file.path() + "] tensor " + quote(name) + " has the type " + type.name +
                                         " and the shape " + tensor.shape.text() + ": codes are read from matrices of " +
                                         quantized_ggml_types() + "; get() reads other tensors");
    }
    const int64_t rows = tensor.shape[0], columns = tensor.shape[1], blocks = tensor.shape.count() / type.block;
    const int64_t groups = columns / type.codes.group, parts = type.codes.has_minima ? 2 : 1;
    const std::vector<uint8_t> raw = bytes(tensor, 0, tensor.shape.count());
    std::vector<uint8_t> codes(static_cast<size_t>(tensor.shape.count() * type.codes.bits / 8));
    std::vector<float> scales(static_cast<size_t>(rows * groups * parts));
    const int64_t codes_of_block = type.block * type.codes.bits / 8, scales_of_block = type.block / type.codes.group * parts;
    for (int64_t i = 0; i < blocks; ++i)
      split(type, raw.data() + i * type.block_bytes, codes.data() + i * codes_of_block, scales.data() + i * scales_of_block);
    const Tensor all = Tensor::from_host(scales.data(), scales.size(), DType::f32, {rows, groups, parts}, device);
    return {Tensor::from_host(codes.data(), codes.size(), DType::u8, {rows, columns * type.codes.bits / 8}, device),
            cast(all, type.codes.scales)};
  }

  OpenedFile file;
  GgufHeader header;
};

GgufFile::GgufFile(const std::string& path) : state_(std::make_unique<State>(path)) {}
GgufFile::~GgufFile() = default;
GgufFile::GgufFile(GgufFile&&) noexcept = default;
GgufFile& GgufFile::operator=(GgufFile&&) noexcept = default;

uint32_t GgufFile::version() const { return state_->header.version; }
const std::map<std::string, GgufValue>& GgufFile::metadata() const { return state_->header.metadata; }
bool GgufFile::has(const std::string& key) const { return metadata().contains(key); }
const GgufValue& GgufFile::value(const std::string& key) const { return state_->value(key); }

int64_t GgufFile::integer(const std::string& key) const {
  if (const uint64_t* number = std::get_if<uint64_t>(&value(key).value)) {
    if (*number > INT64_MAX) state_->file.fail("has a number of 2^63 or more as the key " + quote(key));
    return static_cast<int64_t>(*number);
  }
  return state_->entry<int64_t>(key, "a whole number");
}
double GgufFile::real(const std::string& key) const {
  const double* number = std::get_if<double>(&value(key).value);
  return number ? *number : static_cast<double>(integer(key));
}
const std::string& GgufFile::text(const std::string& key) const { return state_->entry<std::string>(key, "a text"); }
const std::vector<std::string>& GgufFile::texts(const std::string& key) const {
  return state_->entry<std::vector<std::string>>(key, "an array of texts");
}

const std::vector<std::string>& GgufFile::keys() const { return state_->header.names; }
const GgufTensor& GgufFile::info(const std::string& name) const { return state_->info(name); }

Tensor GgufFile::get(const std::string& name, Device device) const {
  const GgufTensor& tensor = info(name);
  return state_->read(name, tensor, 0, tensor.shape, device);
}

Quantized GgufFile::quantized(const std::string& name, Device device) const {
  return state_->quantized(name, info(name), device);
}

Tensor GgufFile::rows(const std::string& name, int64_t first, int64_t last, Device device) const {
  const GgufTensor& tensor = info(name);
  const Shape shape = shape_of_rows(state_->file.path(), name, tensor.shape, first, last);
  if (tensor.shape.rank() == 1 && (first % tensor.block != 0 || last % tensor.block != 0)) {
    throw Error(Code::index_error, "[" + state_->file.path() + "] tensor " + quote(name) +
                                       " has one row of blocks: " + std::to_string(first) + " .. " + std::to_string(last) +
                                       " are not whole blocks of " + std::to_string(tensor.block));
  }
  const int64_t elements = tensor.shape[0] == 0 ? 0 : tensor.shape.count() / tensor.shape[0] * first;
  return state_->read(name, tensor, static_cast<uint64_t>(elements / tensor.block * tensor.block_bytes), shape, device);
}

std::vector<uint8_t> GgufFile::raw(const std::string& name) const {
  const GgufTensor& tensor = info(name);
  return state_->bytes(tensor, 0, tensor.shape.count());
}

}  // namespace plugrad::io
