#include <core/io/safetensors_format.hpp>
#include <core/io/strict_json.hpp>
#include <plugrad/io/file.hpp>
#include <plugrad/io/safetensors.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace plugrad::io {
namespace {

using Item = std::pair<const std::string*, const Tensor*>;

std::vector<Item> in_file_order(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  std::vector<Item> order;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) throw Error(Code::invalid, "[" + path + "] tensor " + name + " is undefined");
    if (name == kMetadataKey) throw Error(Code::invalid, "[" + path + "] the format reserves the name __metadata__");
    order.emplace_back(&name, &tensor);
  }
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const Item& item) { return item_size(item.second->dtype()); });
  return order;
}

std::string metadata_text(const Metadata& metadata) {
  std::string all;
  for (const auto& [key, text] : metadata) all += (all.empty() ? "" : ",") + json_text(key) + ":" + json_text(text);
  return "{" + all + "}";
}

// Returns the header's text, padded with blanks so that the tensors begin at a multiple of 8 bytes.
std::string header_text(const std::string& path, const std::vector<Item>& order, const Metadata& metadata) {
  std::string text;
  const auto add = [&](const std::string& key, const std::string& value) {
    text += (text.empty() ? "{" : ",") + json_text(key) + ":" + value;
  };
  uint64_t offset = 0;
  try {
    if (!metadata.empty()) add(std::string(kMetadataKey), metadata_text(metadata));
    for (const auto& [name, tensor] : order) {
      const uint64_t end = offset + static_cast<uint64_t>(tensor->count() * item_size(tensor->dtype()));
      add(*name, "{\"dtype\":" + json_text(dtype_info(static_cast<uint8_t>(tensor->dtype()))->name) +
                     ",\"shape\":" + json_text(tensor->shape()) + ",\"data_offsets\":[" + std::to_string(offset) + "," +
                     std::to_string(end) + "]}");
      offset = end;
    }
    text += text.empty() ? "{}" : "}";
  } catch (const nlohmann::json::exception&) {
    throw Error(Code::invalid, "[" + path + "] a name or a piece of metadata is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeaderBytes) {
    throw Error(Code::invalid, "[" + path + "] the header would have " + std::to_string(text.size()) +
                                   " bytes; the format allows " + std::to_string(kMaxHeaderBytes));
  }
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors, const Metadata& metadata) {
  const std::vector<Item> order = in_file_order(path, tensors);
  const std::string header = header_text(path, order, metadata);
  AtomicFile file(path);
  uint8_t length[kLengthBytes];
  for (size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<uint8_t>(uint64_t{header.size()} >> (8 * i));
  file.write(length, kLengthBytes);
  file.write(header);
  std::vector<uint8_t> bytes;
  for (const auto& [name, tensor] : order) {
    bytes.resize(static_cast<size_t>(tensor->count() * item_size(tensor->dtype())));
    tensor->copy_to_host(bytes.data());
    file.write(bytes.data(), bytes.size());
  }
  file.commit();
}

}  // namespace plugrad::io
