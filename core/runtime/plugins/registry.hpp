// The process-wide registry of plugins, their records and the opened devices. Created on first use, never destroyed.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/device_state.hpp>
#include <core/runtime/plugins/loader.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace plugrad {

struct Plugin {
  plugrad_backend table;  // negotiated
  const plugrad_backend* source;
  std::string origin;      // its file, or the name given by the program
  size_t record;           // its index in Registry::records_
  int64_t counted_by = 0;  // id of the process that counted its devices; 0: not counted yet
  uint32_t devices = 0;
  std::vector<DeviceState*> opened;  // null if not opened
};

class Registry {
 public:
  static Registry& get();

  // Opens a device by name. Throws Error (invalid); the message lists the known devices.
  DeviceState& device(const std::string& name);
  bool has(const std::string& name);
  std::vector<std::string> device_names();
  std::vector<PluginRecord> records();
  std::vector<std::string> directories();
  void add_directory(const std::string& directory);
  PluginRecord load(const std::string& path);
  PluginRecord adopt(const plugrad_backend* table, const std::string& origin);
  void set_options(const std::string& name, const OptionList& options);
  const void* extension(const std::string& backend, const char* name);
  // Returns a host-memory device without streams, or null; its plugin allows this unnamed use (PLUGRAD_AS_FALLBACK, ...).
  // except: a plugin's table to skip, or null. extension: the name of a required extension, or null.
  DeviceState* host_device(uint32_t use, const plugrad_backend* except, const char* extension = nullptr);
  // The device for tensors without a named device. Throws Error (invalid) if no such device exists.
  DeviceState& default_device();
  // The device with this DLPack type and index, or null. Tries the default device first, then plugins with names starting
  // with `name`. If a plugin has an open device of another type, opens no device of the plugin.
  DeviceState* find_at(int32_t dlpack_type, int32_t dlpack_index, const std::string& name);
  void seed(uint64_t seed);
  std::vector<DeviceState*> opened();
  // Locks all mutexes for work on a device without streams, across a fork; release unlocks them.
  void hold();
  void release(bool in_child);

 private:
  void search();                                                                         // mutex held
  void search_in(const std::string& directory);                                          // mutex held
  void leave_out(const std::string& directory, const std::string& why, LogLevel level);  // mutex held
  std::vector<std::string> listed();                                                     // mutex held
  PluginRecord load_file(const std::string& path);                                       // mutex held
  // mutex held; throws Error and sets the stage reached in record. searched: PLUGRAD_DISABLE applies
  void accept(const loader::Loaded& loaded, PluginRecord& record, bool searched = false);
  template <class Load> PluginRecord accept_named(const std::string& origin, const Load& load);
  Plugin* counted_plugin(const std::string& backend);                                              // mutex held
  void count(Plugin& plugin);                                                                      // mutex held
  void count_all();                                                                                // mutex held
  Plugin* find_plugin(const std::string& backend);                                                 // mutex held
  DeviceState& open(Plugin& plugin, uint32_t index);                                               // mutex held
  DeviceState* find_in(Plugin& plugin, int32_t dlpack_type, int32_t dlpack_index, bool may_open);  // mutex held
  OptionList options_for(const Plugin& plugin, uint32_t index);
  std::string why_unknown(const std::string& backend);
  std::string where_searched();
  std::string all_devices();
  [[noreturn]] void throw_unknown(const std::string& name);

  // Locks the registry. Throws Error (internal) if a function of a plugin keeps it locked for longer than a trial may take:
  // if the plugin waits for this thread, both would wait for ever.
  class Locked {
   public:
    explicit Locked(Registry& registry);
    ~Locked() { registry_.mutex_.unlock(); }
    Locked(const Locked&) = delete;

   private:
    Registry& registry_;
  };
  // Names the running function of a plugin, for threads waiting for the lock.
  class Busy {
   public:
    Busy(Registry& registry, const std::string& what);
    ~Busy() { say(before_); }
    Busy(const Busy&) = delete;

   private:
    struct What {
      std::string name;
      std::chrono::steady_clock::time_point since;
    };
    friend Registry;
    void say(const What& what);
    Registry& registry_;
    What before_;
  };
  std::string kept_by();  // the function of a plugin that has kept the registry locked for too long; else ""

  std::recursive_timed_mutex mutex_;  // a plugin's open may call the host
  std::mutex busy_mutex_;
  Busy::What busy_;
  std::string opening_;  // the device being opened at the moment
  bool searched_ = false;
  std::vector<std::string> directories_;  // added by the program
  std::vector<PluginRecord> records_;
  std::deque<Plugin> plugins_;
  std::deque<DeviceState> devices_;
  std::map<std::string, OptionList> options_;
  uint64_t seed_ = 0;
};

}  // namespace plugrad
