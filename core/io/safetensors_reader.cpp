#include <core/io/mapped_tensor.hpp>
#include <core/io/quote.hpp>
#include <core/io/row_range.hpp>
#include <core/io/safetensors_format.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <vector>

namespace plugrad::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are little-endian in the file and on the host");

}  // namespace

struct SafetensorsFile::State {
  explicit State(const std::string& path) : file(path), header(read_header(file)) {}

  const TensorEntry& info(const std::string& name) const {
    const auto found = header.tensors.find(name);
    if (found != header.tensors.end()) return found->second;
    throw Error(Code::invalid, "[" + file.path() + "] has no tensor " + quote(name) + ": keys() lists its " +
                                   std::to_string(header.tensors.size()) + " names");
  }
  // Reads a tensor of this shape from `skipped` bytes after the start of the entry.
  Tensor read(const std::string& name, const TensorEntry& entry, uint64_t skipped, const Shape& shape, Device device) const {
    std::vector<uint8_t> bytes(static_cast<size_t>(shape.count() * item_size(entry.dtype)));
    file.read(header.data + entry.begin + skipped, bytes.data(), bytes.size());
    if (entry.dtype == DType::boolean && std::ranges::any_of(bytes, [](uint8_t byte) { return byte > 1; })) {
      file.fail("is not a valid safetensors file: tensor " + quote(name) +
                " is BOOL, but holds a byte that is neither 0 nor 1");
    }
    return Tensor::from_host(bytes.data(), static_cast<size_t>(shape.count()), entry.dtype, shape, device);
  }

  OpenedFile file;
  SafetensorsHeader header;
};

SafetensorsFile::SafetensorsFile(const std::string& path) : state_(std::make_unique<State>(path)) {}
SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;

const SafetensorsHeader& SafetensorsFile::header() const { return state_->header; }

std::vector<std::string> SafetensorsFile::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : header().tensors) names.push_back(name);
  return names;
}

const TensorEntry& SafetensorsFile::info(const std::string& name) const { return state_->info(name); }

Tensor SafetensorsFile::get(const std::string& name, Device device) const {
  const TensorEntry& entry = info(name);
  return state_->read(name, entry, 0, entry.shape, device);
}

Tensor SafetensorsFile::map(const std::string& name, Device device) const {
  const TensorEntry& entry = info(name);
  const uint64_t begin = header().data + entry.begin;
  if (entry.dtype != DType::boolean)  // its bytes need a check
    if (std::optional<Tensor> mapped = mapped_tensor(state_->file, begin, entry.dtype, entry.shape, device)) return *mapped;
  return get(name, device);
}

Tensor SafetensorsFile::rows(const std::string& name, int64_t first, int64_t last, Device device) const {
  const TensorEntry& entry = info(name);
  const Shape shape = shape_of_rows(state_->file.path(), name, entry.shape, first, last);
  const uint64_t row = entry.shape[0] == 0 ? 0 : (entry.end - entry.begin) / static_cast<uint64_t>(entry.shape[0]);
  return state_->read(name, entry, row * static_cast<uint64_t>(first), shape, device);
}

Safetensors read_safetensors(const std::string& path, Device device) {
  const SafetensorsFile file(path);
  std::vector<std::pair<const std::string*, const TensorEntry*>> order;
  for (const auto& [name, entry] : file.header().tensors) order.emplace_back(&name, &entry);
  std::ranges::sort(order, {}, [](const auto& item) { return item.second->begin; });
  Safetensors all;
  all.metadata = file.header().metadata;
  for (const auto& [name, entry] : order) all.tensors[*name] = file.get(*name, device);
  return all;
}

}  // namespace plugrad::io
