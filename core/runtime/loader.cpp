#include <core/runtime/loader.hpp>

#include <core/runtime/platform.hpp>
#include <plugrad/runtime/error.hpp>

#include <boost/dll/shared_library.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace plugrad::loader {
namespace fs = std::filesystem;
namespace dll = boost::dll;
namespace {
// Handles stay open until the process ends, because a plugin's threads may still run; reachable for leak checkers.
std::vector<dll::shared_library>& handles() {
  static auto& kept = *new std::vector<dll::shared_library>;
  return kept;
}

[[noreturn]] void refuse(Code code, const std::string& why) { throw Error(code, why); }

}  // namespace

bool valid_name(const char* name) {
  if (!name || !(*name >= 'a' && *name <= 'z')) return false;
  return std::ranges::all_of(std::string_view(name), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::vector<std::string> candidates(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("libplugrad-backend-") && name.ends_with(".so")) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

const plugrad_backend* load(const std::string& path, PluginRecord& record) {
  record.path = path;
  record.stage = Stage::found;
  if (!path.starts_with('/')) refuse(Code::invalid, "the path is not absolute");
  const std::string damage = platform::check_shared_object(path);
  if (!damage.empty()) refuse(Code::invalid, damage);
  record.stage = Stage::file;
  dll::shared_library library;
  try {
    library.load(path, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
  } catch (const std::exception& error) {  // its text contains the system loader's message
    refuse(Code::invalid, error.what());
  }
  handles().push_back(library);
  record.stage = Stage::loaded;
  const std::string symbol = "plugrad_backend_v" + std::to_string(PLUGRAD_ABI_MAJOR);
  if (!library.has(symbol))
    refuse(Code::unsupported, "it does not export " + symbol + ": not a plugin, or for another major ABI version");
  record.stage = Stage::symbol;
  return library.get<const plugrad_backend*(const plugrad_host*)>(symbol)(host());
}

plugrad_backend negotiate(const plugrad_backend* table) {
  if (!table) refuse(Code::unsupported, "its entry symbol returned null");
  if (table->struct_size < sizeof(plugrad_backend)) refuse(Code::unsupported, "its table is shorter than revision 0");
  const uint32_t shared = std::min<uint32_t>(table->revision, PLUGRAD_REVISION);
  if (!table->layouts || table->layouts[shared] != plugrad_layouts[shared])
    refuse(Code::unsupported, "its structs are laid out differently (it was built with revision " +
                                  std::to_string(table->revision) + " of another ABI): rebuild it with this SDK");
  plugrad_backend ours{};
  std::memcpy(&ours, table, std::min<size_t>(table->struct_size, sizeof ours));
  if (!valid_name(ours.name)) refuse(Code::invalid, "its name is not of the form [a-z][a-z0-9_-]*");
  if (!ours.count || !ours.open || !ours.resolve) refuse(Code::invalid, "count, open or resolve is null");
  if (!ours.version) ours.version = "";
  return ours;
}

}  // namespace plugrad::loader
