#include <core/io/byte_source.hpp>
#include <plugrad/io/safetensors.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <bit>
#include <vector>

namespace plugrad::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are little-endian in the file and on the host");

void skip(ByteSource& source, uint64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  if (source.read(bytes.data(), bytes.size()) != bytes.size()) source.fail("was cut short while it was read");
}

Tensor read_tensor(ByteSource& source, const std::string& name, const TensorEntry& entry, Device device) {
  std::vector<uint8_t> bytes(static_cast<size_t>(entry.end - entry.begin));
  if (source.read(bytes.data(), bytes.size()) != bytes.size()) source.fail("was cut short while it was read");
  if (entry.dtype == DType::boolean && std::ranges::any_of(bytes, [](uint8_t byte) { return byte > 1; })) {
    source.fail("is not a valid safetensors file: tensor " + name + " is BOOL, but holds a byte that is neither 0 nor 1");
  }
  return Tensor::from_host(bytes.data(), static_cast<size_t>(entry.shape.count()), entry.dtype, entry.shape, device);
}

}  // namespace

Safetensors read_safetensors(const std::string& path, Device device) {
  SafetensorsHeader header = read_safetensors_header(path);
  std::vector<std::pair<const std::string*, const TensorEntry*>> order;
  for (const auto& [name, entry] : header.tensors) order.emplace_back(&name, &entry);
  std::ranges::sort(order, {}, [](const auto& item) { return item.second->begin; });
  ByteSource source(path, Packing::plain);
  skip(source, header.data);
  Safetensors file;
  file.metadata = std::move(header.metadata);
  for (const auto& [name, entry] : order) file.tensors[*name] = read_tensor(source, *name, *entry, device);
  return file;
}

}  // namespace plugrad::io
