#include <core/runtime/plugins/registry.hpp>

#include <core/runtime/fork.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/observe/observer.hpp>
#include <core/runtime/plugins/environment_options.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <core/runtime/plugins/handshake.hpp>
#include <core/runtime/plugins/loader.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <core/runtime/plugins/probe.hpp>
#include <core/runtime/plugins/verdicts.hpp>
#include <core/runtime/split.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/log.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>

namespace plugrad {
namespace {
void report(const plugrad_host*, plugrad_status, const char* message) { local().report = message ? message : ""; }
void log_line(const plugrad_host*, uint32_t level, const char* message) {
  log(level <= PLUGRAD_ERROR ? static_cast<LogLevel>(level) : LogLevel::error, message ? message : "");
}
const void* host_extension(const plugrad_host*, const char*) { return nullptr; }
const plugrad_host kHost = {sizeof(plugrad_host), PLUGRAD_REVISION, plugrad_layouts, report, log_line, host_extension};

// "cuda:1" -> {"cuda", 1}; {"", 0} unless the text is a device name.
std::pair<std::string, uint32_t> parse_device(const std::string& name) {
  const size_t colon = name.find(':');
  const std::string backend = name.substr(0, colon);
  if (colon == std::string::npos) return {valid_name(backend.c_str()) ? backend : "", 0};
  const std::string number = name.substr(colon + 1);
  const bool digits =
      !number.empty() && number.size() < 6 && std::ranges::all_of(number, [](unsigned char c) { return std::isdigit(c); });
  if (!digits || !valid_name(backend.c_str())) return {"", 0};
  return {backend, static_cast<uint32_t>(std::stoul(number))};
}
}  // namespace

const char* stage_name(Stage stage) {
  constexpr const char* kNames[] = {"found", "file checked", "loaded",   "symbol found", "contract agreed",
                                    "ready", "shadowed",     "disabled", "not searched"};
  return kNames[static_cast<size_t>(stage)];
}

Registry& Registry::get() {
  static Registry& registry = *[] {
    platform::at_fork([] { get().hold(); }, [] { get().release(false); }, [] { get().release(true); });
    return new Registry;
  }();
  return registry;
}

namespace {
std::array<std::mutex*, 6> last_mutexes() {
  return {&census_mutex(), &depot_mutex(), &log_mutex(), &recorder_mutex(), &observed_mutex(), &tracking_mutex()};
}
}  // namespace

Registry::Locked::Locked(Registry& registry) : registry_(registry) {
  // By the system's clock, because gcc's thread sanitizer knows its lock. Setting the clock back delays the error.
  while (!registry_.mutex_.try_lock_until(std::chrono::system_clock::now() + std::chrono::milliseconds(100)))
    if (const std::string keeper = registry_.kept_by(); !keeper.empty())
      throw Error(Code::internal, "[device] " + keeper +
                                      " while this thread waits for it: a plugin must not ask the core "
                                      "for devices in a thread that it waits for");
}

Registry::Busy::Busy(Registry& registry, const std::string& what) : registry_(registry) {
  {
    const std::lock_guard lock(registry_.busy_mutex_);
    before_ = registry_.busy_;
  }
  say({what, std::chrono::steady_clock::now()});
}

void Registry::Busy::say(const What& what) {
  const std::lock_guard lock(registry_.busy_mutex_);
  registry_.busy_ = what;
}

std::string Registry::kept_by() {
  const auto limit = probe::deadline(probe::Depth::count);
  const std::lock_guard lock(busy_mutex_);
  if (busy_.name.empty() || std::chrono::steady_clock::now() - busy_.since < limit) return "";
  return busy_.name + " has not returned for " + std::to_string(limit.count()) + " s";
}

void Registry::hold() {
  mutex_.lock();
  busy_mutex_.lock();
  ForkMutex::for_each([](std::mutex& each) { each.lock(); });
  for (DeviceState& each : devices_) each.allocator.mutex().lock();
  for (std::mutex* each : last_mutexes()) each->lock();
}

void Registry::release(bool in_child) {
  for (std::mutex* each : last_mutexes()) each->unlock();
  for (DeviceState& each : devices_) each.allocator.mutex().unlock();
  ForkMutex::for_each([](std::mutex& each) { each.unlock(); });
  busy_mutex_.unlock();
  if (in_child) std::construct_at(&mutex_);  // it remembers its owner, a thread missing in the child
  else mutex_.unlock();
}

// Asks a plugin for its devices, once. This may start a driver; the driver costs time and memory, and a fork breaks it. So a
// program pays only for the plugins it uses.
void Registry::count(Plugin& plugin) {
  if (plugin.counted_by) return;
  plugin.counted_by = platform::process();
  PluginRecord& record = records_[plugin.record];
  try {
    const Busy busy(*this, "count of the plugin " + record.name);
    plugin.devices = loader::count(plugin.table, record);
    plugin.opened.resize(plugin.devices);
    record.stage = Stage::ready;
    record.devices = plugin.devices;
  } catch (const std::exception& error) {
    plugin.devices = 0;
    record.reason = error.what();
    log(LogLevel::info, record.path + ": " + stage_name(record.stage) + ", then refused: " + record.reason);
  }
}

void Registry::count_all() {
  search();
  for (Plugin& plugin : plugins_) count(plugin);
}

std::vector<PluginRecord> Registry::records() {
  const Locked lock(*this);
  count_all();
  return records_;
}

Plugin* Registry::find_plugin(const std::string& backend) {
  const auto found = std::ranges::find_if(plugins_, [&](const Plugin& p) { return backend == p.table.name; });
  return found == plugins_.end() ? nullptr : &*found;
}

Plugin* Registry::counted_plugin(const std::string& backend) {
  Plugin* plugin = find_plugin(backend);
  if (!plugin && !searched_) search(), plugin = find_plugin(backend);
  if (plugin) count(*plugin);
  return plugin;
}

std::vector<std::string> Registry::device_names() {
  const Locked lock(*this);
  count_all();
  std::vector<std::string> names;
  for (const Plugin& plugin : plugins_)
    for (uint32_t i = 0; i < plugin.devices; ++i) names.push_back(plugin.table.name + (":" + std::to_string(i)));
  return names;
}

bool Registry::has(const std::string& name) {
  const auto [backend, index] = parse_device(name);
  const Locked lock(*this);
  const Plugin* plugin = counted_plugin(backend);
  return plugin && index < plugin->devices;
}

DeviceState& Registry::device(const std::string& name) {
  const auto [backend, index] = parse_device(name);
  const Locked lock(*this);
  Plugin* plugin = counted_plugin(backend);
  if (!plugin || index >= plugin->devices) throw_unknown(name);
  return open(*plugin, index);
}

namespace {
// Notes the device being opened.
class Opening {
 public:
  Opening(std::string& noted, const std::string& name) : noted_(noted) { noted_ = name; }
  ~Opening() { noted_.clear(); }
  Opening(const Opening&) = delete;

 private:
  std::string& noted_;
};
}  // namespace

DeviceState& Registry::open(Plugin& plugin, uint32_t index) {
  if (plugin.opened[index]) return *plugin.opened[index];
  check_environment();
  if (plugin.table.stream_create && plugin.counted_by != platform::process())
    throw Error(Code::device_lost,
                "[" + std::string(plugin.table.name) + ":" + std::to_string(index) +
                    "] the process was forked after the plugin had looked for its devices, and its "
                    "driver does not survive that: start processes by spawn instead of fork, or fork first");
  if (devices_.size() == kMaxDevices)
    throw Error(Code::unsupported, "[device] more than " + std::to_string(kMaxDevices) + " devices opened in one process");
  const std::string name = plugin.table.name + (":" + std::to_string(index));
  if (!opening_.empty())
    throw Error(Code::internal, "[device] the open of " + opening_ + " asks the core for the device " + name +
                                    ": the open of a plugin's device must not open devices");
  const OptionList options = options_for(plugin, index);
  loader::try_open(records_[plugin.record], index, options);
  const Busy busy(*this, "open of the device " + name);
  const Opening opening(opening_, name);
  DeviceState& made = devices_.emplace_back(plugin.table, plugin.source, plugin.origin, index,
                                            static_cast<uint32_t>(devices_.size()), options);
  made.generator.seed = seed_;
  return *(plugin.opened[index] = &made);
}

// Later options win: the environment's, the program's for the backend, the program's for the device.
OptionList Registry::options_for(const Plugin& plugin, uint32_t index) {
  std::map<std::string, std::string> merged = environment_options(plugin.table.name, "device");
  for (const std::string& name : {std::string(plugin.table.name), plugin.table.name + (":" + std::to_string(index))})
    for (const auto& [key, value] : options_[name]) merged[key] = value;
  return {merged.begin(), merged.end()};
}

void Registry::set_options(const std::string& name, const OptionList& options) {
  const Locked lock(*this);
  const auto [backend, index] = parse_device(name);
  if (backend.empty())
    throw Error(Code::invalid,
                "[device] options for '" + name + "': the name of a backend or a device expected, like cpu or cuda:1");
  if (Plugin* plugin = find_plugin(backend))
    for (uint32_t i = 0; i < plugin->devices; ++i)
      if (plugin->opened[i] && (name == backend || i == index))
        throw Error(Code::invalid, "[device] options for " + name + ": it is open already; set them before its first use");
  options_[name] = options;
}

const void* Registry::extension(const std::string& backend, const char* name) {
  const Locked lock(*this);
  search();
  Plugin* plugin = find_plugin(backend);
  return plugin ? extension_of(plugin->table, name) : nullptr;
}

// Returns the reason of the plugin with this name, or why no such plugin exists.
std::string Registry::why_unknown(const std::string& backend) {
  for (const PluginRecord& r : records_) {
    if (r.stage != Stage::ready || r.name != backend) continue;
    if (!r.devices) return "its plugin " + r.path + " finds none: " + r.reason;
    return "the last one of its plugin is " + backend + ":" + std::to_string(r.devices - 1);
  }
  return "no plugin has that name in" + where_searched();
}

std::string Registry::all_devices() {
  std::string devices;
  for (const std::string& name : device_names()) devices += " " + name;
  return devices.empty() ? " none" : devices;
}

void Registry::throw_unknown(const std::string& name) {
  const std::string devices = all_devices();  // asks the plugins, and so comes first
  const std::string backend = parse_device(name).first;
  const std::string why = backend.empty() ? "a name is like cpu or cuda:1" : why_unknown(backend);
  throw Error(Code::invalid, "[device] no device '" + name + "': " + why + ". Devices:" + devices);
}

std::vector<DeviceState*> Registry::opened() {
  const Locked lock(*this);
  std::vector<DeviceState*> all;
  for (DeviceState& device : devices_) all.push_back(&device);
  return all;
}

void Registry::seed(uint64_t value) {
  const Locked lock(*this);
  seed_ = value;
  for (DeviceState& device : devices_) {
    device.generator.seed = value;
    device.generator.offset = 0;
  }
}

// --- The public functions.

const plugrad_host* host() { return &kHost; }
std::vector<PluginRecord> plugins() { return Registry::get().records(); }
std::vector<std::string> plugin_directories() { return Registry::get().directories(); }
void add_plugin_directory(const std::string& directory) { Registry::get().add_directory(directory); }
PluginRecord load_plugin(const std::string& path) { return Registry::get().load(path); }
PluginRecord add_backend(const plugrad_backend* table, const std::string& origin) {
  return Registry::get().adopt(table, origin);
}
std::vector<QuarantinedPlugin> quarantined_plugins() {
  std::vector<QuarantinedPlugin> all;
  for (verdicts::Verdict& each : verdicts::faults()) all.push_back({std::move(each.path), std::move(each.fault)});
  return all;
}
size_t clear_quarantine(const std::string& path) {
  size_t removed = 0;
  for (const verdicts::Verdict& each : verdicts::faults())
    if (path.empty() || each.path == path) removed += verdicts::forget(each.path);
  return removed;
}
std::vector<std::string> device_names() { return Registry::get().device_names(); }
void set_device_options(const std::string& name, const OptionList& options) { Registry::get().set_options(name, options); }
const void* backend_extension(const std::string& backend, const char* name) {
  return Registry::get().extension(backend, name);
}
bool has_device(const std::string& name) noexcept {
  try {
    return Registry::get().has(name);
  } catch (...) {
    return false;
  }
}
void manual_seed(uint64_t seed) {
  observe::unrepeatable("seeds the generators", "call manual_seed before it");
  Registry::get().seed(seed);
}

Device::Device(const std::string& name) : state_(&Registry::get().device(name)) {}

}  // namespace plugrad
