// Devices and plugins.
#include <python/binding.hpp>

#include <nanobind/stl/optional.h>

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cctype>

namespace plugrad::python {
namespace {

constexpr const char *kCuda = "cuda", *kVulkan = "vulkan";
constexpr int32_t kGpuTypes[] = {2,  4,  7,  8,
                                 10, 13, 14, 15};  // DLDeviceType: CUDA, OpenCL, Vulkan, Metal, ROCm, managed, SYCL, WebGPU

std::string backend_of(const std::string& name) { return name.substr(0, name.find(':')); }

// Returns the reason for a missing device, from the plugin or the loader.
std::string why_not(const std::string& name) {
  const std::string backend = backend_of(name);
  for (const PluginRecord& record : plugins()) {
    const bool is_file = record.path.find("libplugrad-backend-" + backend + ".so") != std::string::npos;
    if (record.name != backend && !is_file) continue;
    if (record.stage == Stage::ready && record.devices)
      return "its plugin " + record.path + " brings " + std::to_string(record.devices) + " of them";
    return record.path + ": " +
           (record.stage == Stage::ready ? "" : std::string(stage_name(record.stage)) + ", then refused: ") + record.reason;
  }
  std::string where;
  for (const std::string& each : plugin_directories()) where += (where.empty() ? "" : ", ") + each;
  return "no plugin brings '" + backend + "' (looked in " + where + ")";
}

bool is_gpu(const Device& device) { return std::ranges::count(kGpuTypes, device.dlpack_type()) > 0; }

// Returns the first GPU of CUDA, else the first GPU of another plugin, else an undefined device. CUDA comes first because a
// GPU often has a plugin for CUDA and a plugin for Vulkan. Skips devices that cannot be opened.
Device first_gpu() {
  search_entry_points();
  Device found;
  for (const std::string& name : device_names()) {
    try {
      const Device device(name);
      if (!is_gpu(device)) continue;
      if (backend_of(name) == kCuda) return device;
      if (!found.defined()) found = device;
    } catch (const Error&) {
      continue;
    }
  }
  return found;
}

// Returns the name without ":0": "cpu" and "cuda", but "cuda:1".
std::string short_name(const Device& device) {
  const std::string& name = device.name();
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

Device cuda_device(int64_t index) {
  if (index < 0)
    throw Error(Code::invalid, "[device] CUDA device " + std::to_string(index) + " does not exist: indices begin at 0");
  return named_device(std::string(kCuda) + ":" + std::to_string(index));
}

void bind_memory(nb::module_& m) {
  nb::class_<MemoryStats>(m, "MemoryStats", "Bytes of device memory that plugrad has allocated.")
      .def_ro("active", &MemoryStats::active,
              "Bytes of tensors and workspaces; small blocks that other threads keep for reuse are included.")
      .def_ro("cached", &MemoryStats::cached, "Free bytes that are kept for reuse.")
      .def_ro("peak", &MemoryStats::peak,
              "The maximum of active since reset_peak(). Small blocks count with their whole chunks.")
      .def_ro("reserved", &MemoryStats::reserved, "Bytes allocated from the device: active and cached.")
      .def_ro("small", &MemoryStats::small, "The part of reserved in chunks for blocks of up to 4 KB.")
      .def_ro("segments", &MemoryStats::segments, "The number of buffers that make up reserved.")
      .def_ro("largest_free", &MemoryStats::largest_free, "Bytes of the largest free block.")
      .def("__repr__", [](const MemoryStats& s) {
        return "MemoryStats(active=" + std::to_string(s.active) + ", cached=" + std::to_string(s.cached) +
               ", peak=" + std::to_string(s.peak) + ", reserved=" + std::to_string(s.reserved) +
               ", small=" + std::to_string(s.small) + ", segments=" + std::to_string(s.segments) +
               ", largest_free=" + std::to_string(s.largest_free) + ")";
      });
  nb::class_<DeviceCounters>(m, "DeviceCounters", "Counts of a device's calls and copies since the device was opened.")
      .def_ro("kernels", &DeviceCounters::kernels, "Calls of the plugin's kernels.")
      .def_ro("layout_copies", &DeviceCounters::layout_copies,
              "Dense copies, made for kernels that do not accept an operand's layout.")
      .def_ro("widened", &DeviceCounters::widened,
              "Ops that the plugin lacks in their dtype and the core computed in a wider dtype.")
      .def_ro("decompositions", &DeviceCounters::decompositions,
              "Ops that the plugin lacks and the core composed of other ops.")
      .def_ro("host_fallbacks", &DeviceCounters::host_fallbacks, "Ops that a host-memory backend ran instead.")
      .def_ro("uploads", &DeviceCounters::uploads, "Copies from the host.")
      .def_ro("downloads", &DeviceCounters::downloads, "Copies to the host.");
}

Device any_gpu() {
  const Device device = first_gpu();
  if (!device.defined())
    throw Error(Code::internal, "[device] no GPU is available: CUDA: " + why_not(kCuda) + "; Vulkan: " + why_not(kVulkan));
  return device;
}

bool is_cuda_available() {
  try {
    search_entry_points();
  } catch (...) {  // this function must not raise
  }
  return has_device("cuda:0");
}

// A device equals its names, with and without ":0".
bool equals(const Device& a, nb::handle b) {
  if (nb::isinstance<nb::str>(b)) return short_name(a) == utf8_of(b) || a.name() == utf8_of(b);
  return nb::isinstance<Device>(b) && nb::cast<Device>(b) == a;
}

void bind_makers(nb::class_<Device>& c) {
  c.def(
       "__init__",
       [](Device* self, const DeviceLike& name, std::optional<int64_t> index) {
         if (!index) new (self) Device(name.get());
         else new (self) Device(named_device(utf8_of(name.given) + ":" + std::to_string(*index)));
       },
       nb::arg("name"), nb::arg("index") = nb::none())
      .def_static(
          "cpu", [] { return named_device("cpu"); }, "Returns the CPU.")
      .def_static(
          "cuda", cuda_device, nb::arg("index") = 0,
          "Returns a CUDA device. Raises RuntimeError with the reason if there is no such device, and ValueError for a "
          "negative index.")
      .def_static(
          "gpu", any_gpu,
          "Returns the first GPU of CUDA, else the first GPU of another plugin; software devices do not count. Raises "
          "RuntimeError if there is no GPU.")
      .def_static(
          "is_gpu_available", [] { return first_gpu().defined(); }, "Returns whether there is a GPU of any kind.")
      .def_static("is_cuda_available", is_cuda_available,
                  "Returns whether there is a CUDA device. Opens no device and raises no error.");
}

void bind_properties(nb::class_<Device>& c) {
  c.def(
       "is_cpu", [](const Device& d) { return backend_of(d.name()) == "cpu"; },
       "Returns whether the device belongs to the plugin cpu.")
      .def(
          "is_cuda", [](const Device& d) { return backend_of(d.name()) == kCuda; },
          "Returns whether the device belongs to the plugin cuda.")
      .def("is_gpu", is_gpu, "Returns whether the device's DLPack type is a GPU.")
      .def_prop_ro(
          "name", [](const Device& d) { return d.name(); }, "The full name: 'cpu:0'.")
      .def_prop_ro(
          "type", [](const Device& d) { return backend_of(d.name()); }, "The plugin's name: 'cpu'.")
      .def_prop_ro(
          "index", [](const Device& d) { return std::stoi(d.name().substr(d.name().find(':') + 1)); },
          "The number after the colon.")
      .def_prop_ro(
          "description", [](const Device& d) { return d.description(); }, "The usual name of the hardware.")
      .def_prop_ro(
          "plugin", [](const Device& d) { return d.plugin(); }, "The path of the plugin's file.")
      .def("__eq__", equals, nb::arg("other").none())
      .def("__hash__", [](const Device& d) { return nb::hash(nb::str(short_name(d).c_str())); })
      .def("__str__", short_name)
      .def("__repr__", [](const Device& d) { return "Device(" + short_name(d) + ")"; })
      .def("__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(self.attr("name"))); });
}

void bind_end_of_process(nb::module_& m) {
  m.def("_finish_all", [] { unlocked([] { finish_all(); }); });
  nb::module_::import_("atexit").attr("register")(m.attr("_finish_all"));
}

void bind_actions(nb::class_<Device>& c) {
  c.def(
       "synchronize", [](const Device& d) { unlocked([d] { d.sync(); }); },
       "Waits for all submitted work. Raises the error of an op that failed in the meantime.")
      .def("memory", &Device::memory, "Returns MemoryStats: the bytes in use, cached, and at the peak.")
      .def("reset_peak", &Device::reset_peak, "Resets the peak to the bytes in use now.")
      .def(
          "trim", [](const Device& d) { return unlocked([d] { return d.trim(); }); },
          "Frees cached memory of the device, and returns the number of freed bytes.")
      .def("counters", &Device::counters, "Returns DeviceCounters: counts of calls and copies since the device was opened.");
}

void bind_records(nb::module_& m) {
  nb::class_<PluginRecord>(
      m, "PluginRecord", "The result of loading a file that looks like a plugin, or of a directory that cannot be searched.")
      .def_ro("path", &PluginRecord::path)
      .def_prop_ro(
          "stage", [](const PluginRecord& r) { return stage_name(r.stage); },
          "The last stage that loading reached; 'ready' is the final stage.")
      .def_ro("reason", &PluginRecord::reason, "The reason why loading stopped or why there is no device; else empty.")
      .def_ro("name", &PluginRecord::name, "The backend's name; empty if loading stopped before the name was known.")
      .def_ro("version", &PluginRecord::version)
      .def_ro("devices", &PluginRecord::devices, "The number of the plugin's devices.")
      .def_ro("notes", &PluginRecord::notes,
              "Changes that the plugin made to the process and the core reverted; else empty.")
      .def_prop_ro("is_ready", [](const PluginRecord& r) { return r.stage == Stage::ready; })
      .def("__repr__", [](const PluginRecord& r) {
        return "PluginRecord(" + (r.name.empty() ? r.path : r.name + " " + r.version) + ", " + stage_name(r.stage) +
               ", devices=" + std::to_string(r.devices) + (r.reason.empty() ? "" : ", reason='" + r.reason + "'") + ")";
      });
}

std::string absolute(const nb::object& path) { return path_of(nb::module_::import_("os.path").attr("abspath")(path)); }

// Returns a function that adds the plugin directories of other packages and then returns the result of `ask`.
template <class Ask> auto searched(Ask ask) {
  return [ask] {
    search_entry_points();
    return unlocked(ask);
  };
}

void bind_plugins(nb::module_& m) {
  m.def("backends", searched([] { return plugins(); }),
        "Returns a record for each file that was considered, in search order, with the reason for a refused file.");
  m.def("devices", searched([] { return device_names(); }), "Returns the names of all devices. Opens no device.");
  m.def("plugin_directories", searched([] { return plugin_directories(); }),
        "Returns the directories in which plugins are searched, in search order.");
  m.def(
      "load_plugin",
      [](const nb::object& path) {
        search_entry_points();
        return unlocked([file = absolute(path)] { return load_plugin(file); });
      },
      nb::arg("path"),
      "Loads a plugin file now. Raises ValueError or NotImplementedError with the failed stage and the loader's message.");
  m.def(
      "quarantined_plugins",
      [] {
        std::vector<std::pair<std::string, std::string>> all;
        for (const QuarantinedPlugin& each : quarantined_plugins()) all.emplace_back(each.path, each.reason);
        return all;
      },
      "Returns the path and the reason of each plugin file that crashed, hung or ended the process of its trial.");
  m.def(
      "clear_quarantine", [](const nb::object& path) { return clear_quarantine(path.is_none() ? "" : absolute(path)); },
      nb::arg("path") = nb::none(),
      "Makes the next search try a quarantined file again, or all quarantined files. Returns the number of these files.");
  m.def(
      "add_plugin_directory", [](const nb::object& path) { add_plugin_directory(absolute(path)); }, nb::arg("path"),
      "Searches this directory before all other directories. Raises ValueError after the first search for devices.");
}

void set_options(const std::string& name, const nb::dict& options) {
  OptionList list;
  for (const auto& [key, value] : options)
    list.emplace_back(nb::cast<std::string>(nb::str(key)), nb::cast<std::string>(nb::str(value)));
  set_device_options(name, list);
}

void bind_defaults(nb::module_& m) {
  m.def(
      "default_device", [] { return DeviceLike{}.get(); },
      "Returns the device of tensors that are made without a device: the cpu, unless set_default_device changed it.");
  m.def(
      "set_default_device", [](const DeviceLike& device) { set_default_device(device.get()); }, nb::arg("device"),
      "Sets the default device for the whole process.");
  m.def("set_device_options", set_options, nb::arg("name"), nb::arg("options"),
        "Sets options of a backend ('cpu') or a device ('cuda:1') before it is opened: `{'threads': 4}`.");
  m.def(
      "memory_stats", [](const DeviceLike& device) { return device.get().memory(); }, nb::arg("device") = nb::none(),
      "Returns MemoryStats of a device: the bytes in use, cached, and at the peak.");
  m.def("set_deterministic", &set_deterministic, nb::arg("on"), "Sets whether each run gives the same bits.");
  m.def("set_tf32", &set_tf32, nb::arg("on"), "Sets whether matmul of f32 may round its inputs to TF32.");
}

void bind_generators(nb::module_& m) {
  m.def("manual_seed", [](uint64_t seed) { manual_seed(seed); }, nb::arg("seed"), "Seeds the generators of all devices.");
  m.def(
      "generator_state",
      [](const DeviceLike& device) {
        const GeneratorState state = generator_state(device.get());
        return nb::make_tuple(state.seed, state.offset);
      },
      nb::arg("device") = nb::none(), "Returns the state (seed, offset) of a device's generator, for set_generator_state.");
  m.def(
      "set_generator_state",
      [](const nb::tuple& state, const DeviceLike& device) {
        if (state.size() != 2)
          throw nb::value_error("[set_generator_state] the state must be a pair (seed, offset), as generator_state returns");
        const auto number = [&](size_t i, const char* role) {
          return taken<uint64_t>(state[i], role, "a whole number from 0 to 2^64 - 1");
        };
        set_generator_state(device.get(),
                            {number(0, "[set_generator_state] the seed"), number(1, "[set_generator_state] the offset")});
      },
      nb::arg("state"), nb::arg("device") = nb::none(),
      "Sets the state of a device's generator to a result of generator_state.");
}
}  // namespace

void search_entry_points() {
  static bool searched = false;  // under the GIL
  if (std::exchange(searched, true)) return;
  const nb::object directories = nb::module_::import_("plugrad._entry_points").attr("directories")();
  for (const nb::handle each : directories) add_plugin_directory(nb::cast<std::string>(each));
}

Device named_device(const std::string& name) {
  search_entry_points();
  if (has_device(name)) return Device(name);
  const std::string backend = backend_of(name);
  const bool well_formed = !backend.empty() && std::ranges::all_of(backend, [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_' || c == '-';
  });
  if (!well_formed)
    throw Error(Code::invalid, "[device] '" + name + "' is not the name of a device; 'cpu' or 'cuda:1', for example, is");
  const std::string shown = backend == kCuda ? "CUDA (" + name + ")" : "device " + name;
  throw Error(Code::internal, "[device] " + shown + " is not available: " + why_not(name));
}

Device DeviceLike::get() const {
  if (!given.is_valid() || given.is_none()) {
    search_entry_points();
    try {
      return default_device();
    } catch (const Error& error) {  // the caller named no device, so this is not a wrong name
      throw Error(Code::internal, error.what());
    }
  }
  if (nb::isinstance<Device>(given)) return nb::cast<Device>(given);
  return named_device(utf8_of(given));
}

void bind_devices(nb::module_& m) {
  bind_memory(m);
  nb::class_<Device> device(
      m, "Device", nb::is_final(),
      "A device of a plugin: `Device('cpu')`, `Device('cuda:1')`.\n\nTwo objects are equal if they are the same device. "
      "Raises RuntimeError, with the reason, if the device is not available.");
  bind_makers(device);
  bind_properties(device);
  bind_actions(device);
  bind_end_of_process(m);
}

void bind_runtime(nb::module_& m) {
  bind_records(m);
  bind_plugins(m);
  bind_defaults(m);
  bind_generators(m);
}

}  // namespace plugrad::python
