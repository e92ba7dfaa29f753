#include <core/runtime/plugins/handshake.hpp>

#include <plugrad/sdk/communicator_layout.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace plugrad {
namespace {
constexpr size_t kLongestName = 63;
constexpr uint32_t kMostDevices = 1024;
}  // namespace

bool valid_name(const char* name) {
  if (!name || !(*name >= 'a' && *name <= 'z')) return false;
  const size_t length = strnlen(name, kLongestName + 1);
  return length <= kLongestName && std::ranges::all_of(std::string_view(name, length), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

std::string entry_symbol() { return "plugrad_backend_v" + std::to_string(PLUGRAD_ABI_MAJOR); }

std::string communicator_symbol() { return "plugrad_communicator_v" + std::to_string(PLUGRAD_ABI_MAJOR); }

std::string no_entry_symbol(const std::string& symbol, const char* what) {
  return "it does not export " + symbol + ": not " + what + ", or for another major ABI version";
}

namespace {
// A copy of a plugin's text, cut to `most` bytes. It lives as long as the process: if a plugin changes its own name later,
// the plugin must not pass for another. Equal texts are stored once. The caller holds the registry's mutex, or is the only
// thread.
const char* kept(const char* text, size_t most) {
  static std::set<std::string>& all = *new std::set<std::string>;
  return all.emplace(text, strnlen(text, most)).first->c_str();
}
}  // namespace

std::string negotiate(const plugrad_backend* table, plugrad_backend& ours) {
  if (!table) return "its entry symbol returned null";
  if (table->struct_size < sizeof(plugrad_backend)) return "its table is shorter than revision 0";
  const uint32_t shared = std::min<uint32_t>(table->revision, PLUGRAD_REVISION);
  if (!table->layouts || table->layouts[shared] != plugrad_layouts[shared])
    return "its structs are laid out differently (it was built with revision " + std::to_string(table->revision) +
           " of another ABI): rebuild it with this SDK";
  ours = {};
  std::memcpy(&ours, table, std::min<size_t>(table->struct_size, sizeof ours));
  if (!ours.count || !ours.open || !ours.resolve) return "count, open or resolve is null";
  ours.name = kept(ours.name ? ours.name : "", kLongestName + 1);
  if (!valid_name(ours.name)) return "its name is not of the form [a-z][a-z0-9_-]*";
  constexpr size_t kLongestVersion = 255;
  ours.version = kept(ours.version ? ours.version : "", kLongestVersion);
  return "";
}

std::string negotiate(const plugrad_communicator* table) {
  if (!table) return "its entry symbol returned null";
  if (table->struct_size < sizeof *table || table->layout != PLUGRAD_COMMUNICATOR_LAYOUT)
    return "its structs are laid out differently (it was built with another SDK): rebuild it with this SDK";
  if (!table->launched || !table->open || !table->split || !table->start || !table->failure || !table->abort ||
      !table->close)
    return "launched, open, split, start, failure, abort or close is null";
  if (!table->test && !table->wait) return "test and wait are both null";
  if (table->dlpack_type && !table->test) return "it takes device memory, but test is null";
  if (!table->version) return "its version is null";
  return valid_name(table->name) ? "" : "its name is not of the form [a-z][a-z0-9_-]*";
}

std::string check_count(uint32_t devices) {
  if (devices <= kMostDevices) return "";
  return "it counts " + std::to_string(devices) + " devices, and a plugin may have " + std::to_string(kMostDevices);
}

}  // namespace plugrad
