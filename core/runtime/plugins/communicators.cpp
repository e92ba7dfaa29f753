#include <core/runtime/plugins/communicators.hpp>

#include <core/runtime/fork.hpp>
#include <core/runtime/plugins/loader.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

namespace plugrad {
namespace engines {
namespace {
struct Loaded {
  PluginRecord record;
  const plugrad_communicator* table = nullptr;
};

ForkMutex mutex;
std::deque<Loaded>& all() {
  static auto& kept = *new std::deque<Loaded>;
  return kept;
}

// Loads a file once, or returns what became of it before. A file named by the program is tried again if it failed. The
// caller holds the mutex.
const Loaded& loaded(const std::string& path, loader::Chosen chosen) {
  const auto known = std::ranges::find(all(), path, [](const Loaded& each) { return each.record.path; });
  const bool again = known != all().end() && !known->table && chosen == loader::Chosen::by_program;
  if (known != all().end() && !again) return *known;
  Loaded& made = again ? *known : all().emplace_back();
  made = {};
  made.record.path = path;
  try {
    made.table = &loader::load_communicator(path, made.record, chosen);
  } catch (const std::exception& error) {
    made.record.reason = error.what();
  }
  return made;
}

std::string name_of(const std::string& path) {
  return std::filesystem::path(path).stem().string().substr(std::string_view(loader::kCommunicatorFile).size());
}

std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const std::string& directory : plugin_directories()) {
    std::string why;
    for (std::string& each : loader::candidates(directory, why, loader::kCommunicatorFile)) found.push_back(std::move(each));
  }
  return found;
}

[[noreturn]] void throw_unknown(const std::string& name) {
  std::set<std::string> names;
  for (const std::string& each : files()) names.insert(name_of(each));
  std::string known, searched;
  for (const std::string& each : names) known += (known.empty() ? "" : ", ") + each;
  for (const std::string& each : plugin_directories()) searched += (searched.empty() ? "" : ", ") + each;
  throw Error(Code::invalid, "[communicator] there is no communicator '" + name +
                                 "': " + (known.empty() ? "none is installed" : "expected one of " + known) +
                                 ", or the absolute path of a file (searched: " + searched + ")");
}
}  // namespace

bool is_present(const std::string& name) {
  return std::ranges::any_of(files(), [&](const std::string& path) { return name_of(path) == name; });
}

const plugrad_communicator& find(const std::string& name) {
  std::string path = name;
  auto chosen = loader::Chosen::by_program;
  if (!name.starts_with('/')) {
    const std::vector<std::string> found = files();
    const auto file = std::ranges::find(found, name, name_of);
    if (file == found.end()) throw_unknown(name);
    path = *file;
    chosen = loader::Chosen::by_search;
  }
  const std::lock_guard lock(mutex);
  const Loaded& result = loaded(path, chosen);
  if (result.table) return *result.table;
  throw Error(Code::invalid,
              "[communicator] " + path + ": " + stage_name(result.record.stage) + ", then refused: " + result.record.reason);
}

}  // namespace engines

std::vector<PluginRecord> communicators() {
  std::vector<PluginRecord> records;
  const std::vector<std::string> found = engines::files();
  const std::lock_guard lock(engines::mutex);
  for (const std::string& each : found) records.push_back(engines::loaded(each, loader::Chosen::by_search).record);
  return records;
}

}  // namespace plugrad
