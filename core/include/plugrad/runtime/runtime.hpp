// The source of devices: plugins found by search, loaded by the program or linked in.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>

#include <string>
#include <vector>

namespace plugrad {

enum class Stage { found, file, loaded, symbol, contract, ready, shadowed, disabled, not_searched };
PLUGRAD_API const char* stage_name(Stage stage);

// The outcome for a candidate. Every candidate has a record, including failed candidates, and so has every directory that
// could not be searched.
struct PluginRecord {
  std::string path;    // of the file or the directory, or "linked in"
  Stage stage;         // the last stage it reached; ready means success
  std::string reason;  // why it stopped there or has no device; quotes the system loader where the loader failed
  std::string name;    // the backend's name, once known
  std::string version;
  uint32_t revision = 0;
  uint32_t devices = 0;
  std::string notes;  // its changes to the process, undone by the core; "" if nothing changed
};

// The process-wide runtime is created on first use and never destroyed. Any thread may call these functions.

// Searches for plugins, once: in directories added by the program, in PLUGRAD_PLUGIN_PATH (absolute elements) and in
// plugrad/plugins-v0 beside the core library. PLUGRAD_DISABLE=name,... skips backends. Returns a record of each candidate,
// in search order, with its number of devices.
// The search first loads an untried file in a process of its own (PLUGRAD_PROBE=always|cached|off; 4 ms, at most
// PLUGRAD_PROBE_SECONDS, or 10 s, and 60 s to count devices). If the file crashes, hangs or ends this process, it goes into
// quarantine. A file of a search, and every directory above it, must belong to root, the user or the owner of the core
// library, and nobody else may write there.
PLUGRAD_API std::vector<PluginRecord> plugins();
// The same for communicators, the files libplugrad-communicator-NAME.so of the same directories. Loads them, which takes
// longer than their use needs: init_process_group loads only the communicator that it uses.
PLUGRAD_API std::vector<PluginRecord> communicators();
// The directories of the search, in order, including directories added by the program.
PLUGRAD_API std::vector<std::string> plugin_directories();
// Adds an absolute directory to the front of the search. Throws Error (invalid) for a relative path or after the search.
PLUGRAD_API void add_plugin_directory(const std::string& directory);
// Loads a file by absolute path and returns its record; an already loaded file stays as it is. Throws Error with the failed
// stage and the loader's message.
PLUGRAD_API PluginRecord load_plugin(const std::string& path);
// Registers a linked-in backend (see PLUGRAD_EXPORT_BACKEND_AS, or backend_table). Throws Error as load_plugin does.
PLUGRAD_API PluginRecord add_backend(const plugrad_backend* table, const std::string& origin = "linked in");
// A plugin file that harmed the process of its trial.
struct QuarantinedPlugin {
  std::string path;
  std::string reason;
};
// The user's quarantine, sorted by path. It lies in the user's cache directory, and all programs of the user share it.
PLUGRAD_API std::vector<QuarantinedPlugin> quarantined_plugins();
// Removes a file from the quarantine, or all files if path is empty; the next search tries them again. Returns the number
// of removed files.
PLUGRAD_API size_t clear_quarantine(const std::string& path = "");
// The core's functions for plugins; programs pass it to a linked-in backend to obtain its table.
PLUGRAD_API const plugrad_host* host();

// The names of all devices of the accepted plugins. Opens no device, but asks each plugin for its number of devices. This
// may start a driver. Opening a device by name asks only the device's own plugin.
PLUGRAD_API std::vector<std::string> device_names();
// Sets options for all devices of a backend ("cpu") or for a single device ("cuda:1"), before it is opened. The options
// override the variable PLUGRAD_<NAME>_OPTIONS ("threads=4,flush_to_zero=1").
PLUGRAD_API void set_device_options(const std::string& name, const OptionList& options);
// Returns an extension of a backend, such as "sim/0", or null.
PLUGRAD_API const void* backend_extension(const std::string& backend, const char* name);
// Whether a device has this name. Does not open it.
PLUGRAD_API bool has_device(const std::string& name) noexcept;

}  // namespace plugrad
