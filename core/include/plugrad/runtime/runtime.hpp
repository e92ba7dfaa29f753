// Where devices come from: plugins found by search, named by the program, or linked in.
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>
#include <plugrad/sdk/abi.h>

#include <string>
#include <vector>

namespace plugrad {

enum class Stage { found, file, loaded, symbol, contract, counted, ready, shadowed, disabled };
PLUGRAD_API const char* stage_name(Stage stage);

// What became of one candidate file. Nothing is ever silent.
struct PluginRecord {
  std::string path;         // or "linked in"
  Stage stage;              // how far it came; ready is the end
  std::string reason;       // why not further, or why it has no device; in the system loader's own words where it spoke
  std::string name;         // the backend's, once known
  std::string version;
  uint32_t revision = 0;
  uint32_t devices = 0;
};

// The process-wide runtime. Made on first use, never destroyed. Each function from any thread.

// Looks for plugins, once: in paths added by the program, PLUGRAD_PLUGIN_PATH (absolute elements), and plugrad/plugins-v0
// beside the core library. PLUGRAD_DISABLE=name,... skips backends. Returns a record of each candidate, in search order,
// with its number of devices.
PLUGRAD_API std::vector<PluginRecord> plugins();
// The directories that the search looks into, in order, with what the program added.
PLUGRAD_API std::vector<std::string> plugin_directories();
// Adds a directory (absolute) to the front of the search; before the first device is asked for. Throws Error (invalid).
PLUGRAD_API void add_plugin_directory(const std::string& directory);
// Loads one file by absolute path, now. Throws Error with the stage that failed and the loader's message.
PLUGRAD_API PluginRecord load_plugin(const std::string& path);
// Takes a backend that is linked in (see PLUGRAD_EXPORT_BACKEND_AS, or backend_table). Throws Error as load_plugin.
PLUGRAD_API PluginRecord add_backend(const plugrad_backend* table, const std::string& origin = "linked in");
// What plugins see of this core; for programs that obtain a linked-in backend's table.
PLUGRAD_API const plugrad_host* host();

// All devices of the plugins that were accepted, by name. Does not open them, but asks each plugin how many it has, which
// may start a driver; a program that names its device asks only that device's plugin.
PLUGRAD_API std::vector<std::string> device_names();
// Options for devices of a backend ("cpu") or one device ("cuda:1"), before it is opened. Also PLUGRAD_<NAME>_OPTIONS
// ("threads=4,flush_to_zero=1"), which these override.
PLUGRAD_API void set_device_options(const std::string& name, const OptionList& options);
// The extension of a backend ("sim/0"), or null.
PLUGRAD_API const void* backend_extension(const std::string& backend, const char* name);
// Whether there is a device of that name, without opening it; never throws.
PLUGRAD_API bool has_device(const std::string& name) noexcept;

}  // namespace plugrad
