// Devices, and the plugins that bring them.
#include <python/binding.hpp>

#include <algorithm>
#include <cctype>

namespace plugrad::python {
namespace {

constexpr const char* kCuda = "cuda";
constexpr int32_t kGpuTypes[] = {2,  4,  7,  8,
                                 10, 13, 14, 15};  // DLDeviceType: CUDA, OpenCL, Vulkan, Metal, ROCm, managed, SYCL, WebGPU

std::string backend_of(const std::string& name) { return name.substr(0, name.find(':')); }

// Why there is no such device, in the words of the plugin or the loader.
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

// The first device that is a GPU, or an undefined one. Those that cannot be opened are passed over.
Device first_gpu() {
  search_entry_points();
  for (const std::string& name : device_names()) {
    try {
      if (const Device device(name); is_gpu(device)) return device;
    } catch (const Error&) {
      continue;
    }
  }
  return {};
}

// "cpu" and "cuda" for the first ones, "cuda:1" for others.
std::string short_name(const Device& device) {
  const std::string& name = device.name();
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

Device cuda_device(int64_t index) {
  if (index < 0) throw Error(Code::invalid, "[device] CUDA device " + std::to_string(index) + ": an index from 0 expected");
  return named_device(std::string(kCuda) + ":" + std::to_string(index));
}

void bind_memory(nb::module_& m) {
  nb::class_<MemoryStats>(m, "MemoryStats", "Bytes of device memory that plugrad took.")
      .def_ro("active", &MemoryStats::active, "Held by tensors and workspaces; small blocks that other threads keep count as held.")
      .def_ro("cached", &MemoryStats::cached, "Free, kept for reuse.")
      .def_ro("peak", &MemoryStats::peak, "The most that was active at once, with small blocks counted by their chunks.")
      .def_ro("reserved", &MemoryStats::reserved, "Taken from the device: active and cached.")
      .def_ro("small", &MemoryStats::small, "Of reserved: chunks for blocks up to 4 KB.")
      .def_ro("segments", &MemoryStats::segments, "How many buffers make up reserved.")
      .def_ro("largest_free", &MemoryStats::largest_free, "The largest free block.")
      .def("__repr__", [](const MemoryStats& s) {
        return "MemoryStats(active=" + std::to_string(s.active) + ", cached=" + std::to_string(s.cached) +
               ", peak=" + std::to_string(s.peak) + ", reserved=" + std::to_string(s.reserved) + ", small=" +
               std::to_string(s.small) + ", segments=" + std::to_string(s.segments) +
               ", largest_free=" + std::to_string(s.largest_free) + ")";
      });
  nb::class_<DeviceCounters>(m, "DeviceCounters", "What passed through a device since it was opened.")
      .def_ro("kernels", &DeviceCounters::kernels, "Calls of the plugin's kernels.")
      .def_ro("layout_copies", &DeviceCounters::layout_copies,
              "Dense copies for kernels that do not take an operand's layout.")
      .def_ro("decompositions", &DeviceCounters::decompositions, "Ops that the plugin lacks, done by other ops.")
      .def_ro("bounces", &DeviceCounters::bounces, "Ops done by a host-memory backend instead.")
      .def_ro("uploads", &DeviceCounters::uploads, "Copies from the host.")
      .def_ro("downloads", &DeviceCounters::downloads, "Copies to the host.");
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
    throw Error(Code::invalid, "[device] '" + name + "' is no name of a device: 'cpu', 'cuda:1' or the like expected");
  const std::string shown = backend == kCuda ? "CUDA (" + name + ")" : "device " + name;
  throw Error(Code::internal, "[device] " + shown + " is not available: " + why_not(name));
}

Device DeviceLike::get() const {
  if (!given.is_valid() || given.is_none()) {
    search_entry_points();
    try {
      return default_device();
    } catch (const Error& error) {  // nobody named a wrong one: it is not available
      throw Error(Code::internal, error.what());
    }
  }
  if (nb::isinstance<Device>(given)) return nb::cast<Device>(given);
  return named_device(nb::cast<std::string>(given));
}

void bind_devices(nb::module_& m) {
  bind_memory(m);
  nb::class_<Device>(
      m, "Device", nb::is_final(),
      "A device of a plugin: `Device('cpu')`, `Device('cuda:1')`.\n\nEqual if it is the same device; RuntimeError, "
      "with the reason, where it is not available.")
      .def(
          "__init__", [](Device* self, const DeviceLike& name) { new (self) Device(name.get()); }, nb::arg("name"))
      .def_static(
          "cpu", [] { return named_device("cpu"); }, "The CPU.")
      .def_static("cuda", cuda_device, nb::arg("index") = 0,
                  "A CUDA device. RuntimeError naming CUDA, and why, where there is none.")
      .def_static(
          "gpu",
          [] {
            const Device device = first_gpu();
            if (!device.defined()) throw Error(Code::internal, "[device] no GPU is available: CUDA: " + why_not(kCuda));
            return device;
          },
          "The first device that is a GPU, of whatever kind. RuntimeError where there is none.")
      .def_static(
          "is_gpu_available", [] { return first_gpu().defined(); }, "Whether there is a GPU, of whatever kind.")
      .def_static(
          "is_cuda_available",
          [] {
            try {
              search_entry_points();
            } catch (...) {  // it is the question here that must not fail
            }
            return has_device("cuda:0");
          },
          "Whether there is a CUDA device. Cheap; opens nothing, raises nothing.")
      .def(
          "is_cpu", [](const Device& d) { return backend_of(d.name()) == "cpu"; },
          "Whether it is the device of the plugin cpu.")
      .def(
          "is_cuda", [](const Device& d) { return backend_of(d.name()) == kCuda; },
          "Whether it is a device of the plugin cuda.")
      .def("is_gpu", is_gpu, "Whether DLPack counts it among the GPUs.")
      .def_prop_ro(
          "name", [](const Device& d) { return d.name(); }, "'cpu:0'")
      .def_prop_ro(
          "type", [](const Device& d) { return backend_of(d.name()); }, "The plugin's name: 'cpu'.")
      .def_prop_ro(
          "index", [](const Device& d) { return std::stoi(d.name().substr(d.name().find(':') + 1)); },
          "The number behind the colon.")
      .def_prop_ro(
          "description", [](const Device& d) { return d.description(); }, "What people call it.")
      .def_prop_ro(
          "plugin", [](const Device& d) { return d.plugin(); }, "The file that it came from.")
      .def(
          "synchronize", [](const Device& d) { unlocked([d] { d.sync(); }); },
          "Waits for all that was submitted; raises what failed on the way.")
      .def("memory", &Device::memory, "Bytes in use, cached, and the most at once.")
      .def("reset_peak", &Device::reset_peak, "Starts counting the peak anew.")
      .def(
          "trim", [](const Device& d) { return unlocked([d] { return d.trim(); }); },
          "Gives cached memory back to the device; the bytes.")
      .def("counters", &Device::counters, "What passed through the device since it was opened.")
      .def(
          "__eq__",
          [](const Device& a, nb::handle b) {
            if (nb::isinstance<nb::str>(b))
              return short_name(a) == nb::cast<std::string>(b) || a.name() == nb::cast<std::string>(b);
            return nb::isinstance<Device>(b) && nb::cast<Device>(b) == a;
          },
          nb::arg("other").none())
      .def("__hash__", [](const Device& d) { return nb::hash(nb::str(short_name(d).c_str())); })
      .def("__str__", short_name)
      .def("__repr__", [](const Device& d) { return "Device(" + short_name(d) + ")"; })
      .def("__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(self.attr("name"))); });
}

void bind_runtime(nb::module_& m) {
  nb::class_<PluginRecord>(m, "PluginRecord", "What became of one file that looked like a plugin.")
      .def_ro("path", &PluginRecord::path)
      .def_prop_ro(
          "stage", [](const PluginRecord& r) { return stage_name(r.stage); }, "How far it came; 'ready' is the end.")
      .def_ro("reason", &PluginRecord::reason, "Why not further, or why it has no device; else empty.")
      .def_ro("name", &PluginRecord::name, "The backend's, once known.")
      .def_ro("version", &PluginRecord::version)
      .def_ro("devices", &PluginRecord::devices, "How many devices it brings.")
      .def_prop_ro("is_ready", [](const PluginRecord& r) { return r.stage == Stage::ready; })
      .def("__repr__", [](const PluginRecord& r) {
        return "PluginRecord(" + (r.name.empty() ? r.path : r.name + " " + r.version) + ", " + stage_name(r.stage) +
               ", devices=" + std::to_string(r.devices) + (r.reason.empty() ? "" : ", reason='" + r.reason + "'") + ")";
      });
  m.def(
      "backends",
      [] {
        search_entry_points();
        return unlocked([] { return plugins(); });
      },
      "One record for each file that was considered, in search order, with the reason for each that was refused.");
  m.def(
      "devices",
      [] {
        search_entry_points();
        return unlocked([] { return device_names(); });
      },
      "The names of all devices. Opens none.");
  m.def(
      "plugin_directories",
      [] {
        search_entry_points();
        return plugin_directories();
      },
      "Where plugins are looked for, in order.");
  m.def(
      "load_plugin",
      [](const nb::object& path) {
        search_entry_points();
        const std::string file = path_of(nb::module_::import_("os.path").attr("abspath")(path));
        return unlocked([file] { return load_plugin(file); });
      },
      nb::arg("path"),
      "Loads one plugin file, now. ValueError or NotImplementedError with the stage that failed and the loader's message.");
  m.def(
      "add_plugin_directory",
      [](const nb::object& path) { add_plugin_directory(path_of(nb::module_::import_("os.path").attr("abspath")(path))); },
      nb::arg("path"), "Searches this directory before all others. ValueError once devices were asked for.");
  m.def(
      "default_device", [] { return DeviceLike{}.get(); },
      "The device of tensors that are given none: the cpu, unless set.");
  m.def(
      "set_default_device", [](const DeviceLike& device) { set_default_device(device.get()); }, nb::arg("device"),
      "Sets it for the whole process.");
  m.def(
      "set_device_options",
      [](const std::string& name, const nb::dict& options) {
        OptionList list;
        for (const auto& [key, value] : options)
          list.emplace_back(nb::cast<std::string>(nb::str(key)), nb::cast<std::string>(nb::str(value)));
        set_device_options(name, list);
      },
      nb::arg("name"), nb::arg("options"),
      "Options of a backend ('cpu') or a device ('cuda:1') before it is opened: `{'threads': 4}`.");
  m.def(
      "memory_stats", [](const DeviceLike& device) { return device.get().memory(); }, nb::arg("device") = nb::none(),
      "Bytes of a device's memory in use.");
  m.def(
      "manual_seed", [](uint64_t seed) { manual_seed(seed); }, nb::arg("seed"), "Seeds the generators of all devices.");
  m.def(
      "generator_state",
      [](const DeviceLike& device) {
        const GeneratorState state = generator_state(device.get());
        return nb::make_tuple(state.seed, state.offset);
      },
      nb::arg("device") = nb::none(), "(seed, offset): what set_generator_state goes on from.");
  m.def(
      "set_generator_state",
      [](const nb::tuple& state, const DeviceLike& device) {
        set_generator_state(device.get(), {nb::cast<uint64_t>(state[0]), nb::cast<uint64_t>(state[1])});
      },
      nb::arg("state"), nb::arg("device") = nb::none());
  m.def("set_deterministic", &set_deterministic, nb::arg("on"), "The same bits on each run.");
  m.def("set_tf32", &set_tf32, nb::arg("on"), "Whether matmul of f32 may round its inputs to TF32.");
}

}  // namespace plugrad::python
