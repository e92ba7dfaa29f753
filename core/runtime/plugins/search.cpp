// The registry's search for plugins, and their loading.
#include <core/runtime/dispatch/printable.hpp>
#include <core/runtime/plugins/loader.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <core/runtime/plugins/registry.hpp>
#include <core/runtime/split.hpp>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

namespace plugrad {
namespace {
bool disabled(const std::string& name) {
  const char* list = platform::environment("PLUGRAD_DISABLE");
  return list && std::ranges::count(split(list, ','), name);
}
constexpr const char* kDisabled = "PLUGRAD_DISABLE names it";
}  // namespace

std::vector<std::string> Registry::directories() {
  const Locked lock(*this);
  std::vector<std::string> all = listed();
  std::erase_if(all, [](const std::string& each) { return !each.starts_with('/'); });
  return all;
}

// All listed directories, relative paths included; a search skips relative paths.
std::vector<std::string> Registry::listed() {
  std::vector<std::string> all = directories_;
  if (const char* path = platform::environment("PLUGRAD_PLUGIN_PATH"))
    for (const std::string& each : split(path, ':')) all.push_back(each);
  const std::filesystem::path core = platform::core_file();
  all.push_back(core.parent_path() / "plugrad" / ("plugins-v" + std::to_string(PLUGRAD_ABI_MAJOR)));
  return all;
}

void Registry::add_directory(const std::string& directory) {
  const Locked lock(*this);
  if (!directory.starts_with('/')) throw Error(Code::invalid, "[plugins] '" + directory + "': an absolute path is expected");
  if (searched_)
    throw Error(Code::invalid,
                "[plugins] '" + directory +
                    "': the search is over; add directories before the first device is asked for, or load_plugin(path)");
  directories_.insert(directories_.begin(), directory);
}

void Registry::search() {
  if (std::exchange(searched_, true)) return;
  for (const std::string& directory : listed()) {
    if (directory.starts_with('/')) search_in(directory);
    else leave_out(directory, "it is not absolute", LogLevel::warning);
  }
}

void Registry::leave_out(const std::string& directory, const std::string& why, LogLevel level) {
  log(level, "'" + directory + "' is left out of the search for plugins: " + why);
  PluginRecord record;
  record.path = directory;
  record.stage = Stage::not_searched;
  record.reason = why;
  if (!directory.empty()) records_.push_back(std::move(record));
}

void Registry::search_in(const std::string& directory) {
  std::string why;
  for (const std::string& path : loader::candidates(directory, why))
    if (std::ranges::find(records_, path, &PluginRecord::path) == records_.end()) records_.push_back(load_file(path));
  if (!why.empty()) leave_out(directory, why, LogLevel::info);
}

PluginRecord Registry::load_file(const std::string& path) {
  PluginRecord record;
  record.path = path;
  record.stage = Stage::found;
  try {
    if (disabled(std::filesystem::path(path).stem().string().substr(std::string_view("libplugrad-backend-").size()))) {
      record.stage = Stage::disabled;
      throw Error(Code::invalid, kDisabled);
    }
    accept(loader::load(path, record, loader::Chosen::by_search), record, true);
  } catch (const std::exception& error) {
    record.reason = error.what();
    if (record.stage != Stage::disabled)
      log(LogLevel::info, path + ": " + stage_name(record.stage) + ", then refused: " + record.reason);
  }
  return record;
}

void Registry::accept(const loader::Loaded& loaded, PluginRecord& record, bool searched) {
  Plugin plugin{loaded.table, loaded.source, record.path, records_.size(), 0, 0, {}};
  record.stage = Stage::contract;
  record.name = plugin.table.name;
  record.version = printable(plugin.table.version);
  record.revision = loaded.source->revision;
  if (searched && disabled(record.name)) {  // under any name of the file
    record.stage = Stage::disabled;
    throw Error(Code::invalid, kDisabled);
  }
  if (const Plugin* first = find_plugin(record.name)) {
    record.stage = Stage::shadowed;
    throw Error(Code::invalid, "another plugin of that name came first: " + first->origin);
  }
  plugins_.push_back(std::move(plugin));
}

// Accepts a plugin named by the program. Every fault is an error at once. An already loaded plugin stays as it is.
template <class Load> PluginRecord Registry::accept_named(const std::string& origin, const Load& load) {
  const Locked lock(*this);
  PluginRecord record;
  record.path = origin;
  Code code = Code::invalid;
  try {
    const loader::Loaded loaded = load(record);
    const auto same = std::ranges::find(plugins_, loaded.source, &Plugin::source);
    if (same != plugins_.end()) {
      count(*same);
      if (records_[same->record].stage == Stage::ready) return records_[same->record];
    }
    accept(loaded, record);
  } catch (const Error& error) {
    record.reason = error.what();
    code = error.code();
  }
  records_.push_back(record);
  if (record.reason.empty()) {
    count(plugins_.back());
    record = records_.back();
    if (record.stage == Stage::ready) return record;
    plugins_.pop_back();  // another plugin of its name may succeed
    code = Code::internal;
  }
  throw Error(code, "[load] " + origin + ": " + stage_name(record.stage) + ", then refused: " + record.reason);
}

PluginRecord Registry::load(const std::string& path) {
  return accept_named(path, [&](PluginRecord& record) { return loader::load(path, record, loader::Chosen::by_program); });
}

PluginRecord Registry::adopt(const plugrad_backend* table, const std::string& origin) {
  return accept_named(origin, [&](PluginRecord& record) {
    record.stage = Stage::symbol;
    return loader::agree(table);
  });
}

// The searched directories, and the plugins that did not load.
std::string Registry::where_searched() {
  std::string searched;
  for (const std::string& directory : directories()) {
    std::string why;
    const size_t files = loader::candidates(directory, why).size();
    searched += (searched.empty() ? " " : ", ") + directory + " (" +
                (why.empty() ? std::to_string(files) + " plugin files" : why) + ")";
  }
  for (const PluginRecord& r : records_)
    if (r.stage != Stage::ready && r.stage != Stage::not_searched && !r.reason.empty())
      searched += "; " + r.path + ", " + stage_name(r.stage) + ": " + r.reason;
  return searched;
}

}  // namespace plugrad
