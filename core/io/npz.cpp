#include <plugrad/io/npy.hpp>

#include <core/io/npy_format.hpp>
#include <core/io/quote.hpp>
#include <core/io/unicode.hpp>
#include <core/io/zip.hpp>
#include <plugrad/runtime/error.hpp>

#include <map>
#include <memory>

namespace plugrad::io {
namespace {

constexpr std::string_view kEnding = ".npy";

void check_name(const std::string& path, const std::string& name) {
  bool valid = !name.empty() && name.size() <= 65535 - kEnding.size();
  for (size_t at = 0; valid && at < name.size();) {
    const Character character = character_at(name, at);
    valid = character.valid && character.code != 0;
    at += character.bytes;
  }
  if (!valid)
    throw Error(Code::invalid,
                "[" + path + "] " + quote(name) + " cannot be the name of an array: 1 .. 65531 bytes of UTF-8 expected");
}

}  // namespace

struct NpzFile::State {
  explicit State(const std::string& path) : zip(path) {}
  ZipReader zip;
};

NpzFile::NpzFile(const std::string& path) : state_(std::make_unique<State>(path)) {}
NpzFile::~NpzFile() = default;
NpzFile::NpzFile(NpzFile&&) noexcept = default;
NpzFile& NpzFile::operator=(NpzFile&&) noexcept = default;

std::vector<std::string> NpzFile::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : state_->zip.members()) {
    if (name.ends_with(kEnding)) names.push_back(name.substr(0, name.size() - kEnding.size()));
  }
  return names;
}

Tensor NpzFile::get(const std::string& name, Device device) const {
  const ZipReader& zip = state_->zip;
  const std::string member = name + std::string(kEnding);
  if (!zip.members().contains(member)) {
    throw Error(Code::invalid, "[" + zip.file().path() + "] has no array " + quote(name) + ": keys() lists its " +
                                   std::to_string(keys().size()) + " names");
  }
  std::vector<uint8_t> bytes = zip.read(member);
  return tensor_of_npy(
      bytes, [&](const std::string& what) { zip.file().fail("its member " + quote(member) + " " + what); }, device);
}

std::map<std::string, Tensor> read_npz(const std::string& path, Device device) {
  const NpzFile file(path);
  std::map<std::string, Tensor> tensors;
  for (const std::string& name : file.keys()) tensors[name] = file.get(name, device);
  return tensors;
}

void write_npz(const std::string& path, const std::map<std::string, Tensor>& tensors, bool compress) {
  for (const auto& [name, tensor] : tensors) check_name(path, name);
  ZipWriter zip(path, compress);
  for (const auto& [name, tensor] : tensors) zip.add(name + std::string(kEnding), npy_of_tensor(tensor, path, quote(name)));
  zip.commit();
}

}  // namespace plugrad::io
