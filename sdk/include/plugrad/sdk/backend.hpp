// For authors of backends: derive from Backend, list kernel rows, write PLUGRAD_EXPORT_BACKEND. Header-only, C++20.
// Every function called by the host is a trampoline that converts exceptions to a status. All symbols are hidden in the
// plugin under any compiler flags, so plugins built with different revisions can share a process.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/dtypes.hpp>
#include <plugrad/sdk/layout.hpp>
#include <plugrad/sdk/ops.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// Throw it to return a status of your choice. std::bad_alloc returns OUT_OF_MEMORY, any other exception INTERNAL.
class BackendError : public std::runtime_error {
 public:
  BackendError(plugrad_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  plugrad_status status() const noexcept { return status_; }

 private:
  plugrad_status status_;
};

// --- One call, as a kernel sees it.

class Backend;
struct OpenDevice;
struct KernelRow;
struct BoundKernel : plugrad_kernel {
  OpenDevice* device;
  const KernelRow* row;
};

// A backend's state of one stream: derive from it and return it from Backend::stream_create.
class Stream {
 public:
  virtual ~Stream() = default;
  plugrad_stream* handle() { return reinterpret_cast<plugrad_stream*>(this); }

 private:
  friend struct OpenDevice;
  OpenDevice* device_ = nullptr;
};

class Call {
 public:
  Call(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op)
      : kernel_(kernel), stream_(stream), op_(op) {}
  const plugrad_kernel* kernel() const { return kernel_; }
  const plugrad_op& op() const { return *op_; }
  const plugrad_view& out(int i = 0) const { return *op_->views[i]; }
  const plugrad_view& in(int i) const { return *op_->views[op_->outputs + i]; }
  bool accumulates() const { return op_->flags & PLUGRAD_ACCUMULATE; }
  template <class T> const T& attributes() const { return *static_cast<const T*>(op_->attributes); }
  template <class S> S& stream() const { return static_cast<S&>(*reinterpret_cast<Stream*>(stream_)); }  // with ASYNC only
  template <class B> B& backend() const;
  template <class T> const T& own() const;  // the object at the row's `own`
  char* workspace() const { return reinterpret_cast<char*>(op_->workspace) + op_->workspace_offset; }  // in device memory

 private:
  const plugrad_kernel* kernel_;
  plugrad_stream* stream_;
  const plugrad_op* op_;
};

constexpr bool is_immediate(const plugrad_view& view) { return view.layout & PLUGRAD_IMMEDIATE; }

// Returns the address of a view's first element, for backends with addresses as buffer handles.
template <class T> T* data(const plugrad_view& view) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(view.buffer) + view.offset);
}

// Returns the value of an immediate operand, rounded to T.
template <class T> T immediate(const plugrad_view& view) {
  if (is_floating(view.dtype)) return static_cast<T>(__builtin_bit_cast(double, view.offset));
  return static_cast<T>(static_cast<int64_t>(view.offset));
}

// --- The table of kernels.

using RunFunction = plugrad_status (*)(const plugrad_kernel*, plugrad_stream*, const plugrad_op*);
using WorkspaceFunction = uint64_t (*)(const plugrad_kernel*, const plugrad_op*);

struct KernelRow {
  uint32_t opcode;
  uint32_t flags;    // the supported flags; DETERMINISTIC: the kernel is always deterministic
  uint16_t layouts;  // the supported layout bits
  uint8_t operands;  // the number of valid entries in dtypes
  std::array<uint8_t, PLUGRAD_MAX_OPERANDS> dtypes;  // 0: the kernel reads the dtype in the view
  RunFunction run;
  WorkspaceFunction workspace;
  const void* own = nullptr;  // the backend's data for its run function, see Call::own

  constexpr bool serves(const plugrad_signature& s) const {
    return opcode == s.opcode && !(s.layout & ~layouts) && !(s.flags & ~flags) && operands == s.outputs + s.inputs &&
           std::equal(s.dtypes, s.dtypes + operands, dtypes.begin(),
                      [](uint8_t wanted, uint8_t served) { return served == 0 || wanted == served; });
  }
};
using Rows = std::span<const KernelRow>;

inline constexpr uint32_t kPlainFlags = PLUGRAD_DETERMINISTIC | PLUGRAD_TF32;  // deterministic, at full precision

plugrad_status report_exception(const plugrad_kernel* kernel) noexcept;

template <auto Function>
plugrad_status run_kernel(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
  try {
    Function(Call(self, stream, op));
    return PLUGRAD_OK;
  } catch (...) {
    return report_exception(self);
  }
}

// Returns a row for the op's dtype with the given run function; the op table gives the dtypes of the operands.
constexpr KernelRow kernel_row(uint32_t opcode, uint8_t dtype, RunFunction run, uint16_t layouts = PLUGRAD_ALL_LAYOUTS,
                               uint32_t flags = kPlainFlags) {
  const OpInfo& op = *op_info(opcode);
  KernelRow row{opcode, flags, layouts, static_cast<uint8_t>(op.operand_count()), {}, run, nullptr};
  for (int i = 0; i < op.operand_count(); ++i) row.dtypes[i] = op.operand_dtype(i, dtype);
  return row;
}

// Returns a row: Function(const Call&) computes opcode for the op's dtype, for views of these layouts. If flags contains
// ACCUMULATE, the function adds to the output when call.accumulates() is true.
template <auto Function>
constexpr KernelRow kernel(uint32_t opcode, uint8_t dtype, uint16_t layouts = PLUGRAD_ALL_LAYOUTS,
                           uint32_t flags = kPlainFlags) {
  return kernel_row(opcode, dtype, run_kernel<Function>, layouts, flags);
}

// Returns a row with a given dtype for each operand, outputs first: for CAST, and for a plugin's own ops.
template <auto Function>
constexpr KernelRow kernel(uint32_t opcode, std::initializer_list<uint8_t> dtypes, uint16_t layouts = PLUGRAD_ALL_LAYOUTS,
                           uint32_t flags = kPlainFlags) {
  KernelRow row{opcode, flags, layouts, 0, {}, run_kernel<Function>, nullptr};
  for (uint8_t dtype : dtypes) row.dtypes[row.operands++] = dtype;
  return row;
}

// Returns the same row for a kernel with Bytes(const Call&) bytes of workspace.
template <auto Bytes> constexpr KernelRow with_workspace(KernelRow row) {
  row.workspace = [](const plugrad_kernel* self, const plugrad_op* op) -> uint64_t {
    try {
      return Bytes(Call(self, nullptr, op));
    } catch (const std::bad_alloc&) {
      return UINT64_MAX;
    }
  };
  return row;
}

// --- Opening a device.

class Options {
 public:
  explicit Options(const plugrad_options* given) : given_(given) {}

  // Throws INVALID if a given key is not in known.
  void allow(std::initializer_list<const char*> known) const {
    for (uint32_t i = 0; given_ && i < given_->count; ++i) {
      const std::string_view key = item(i).key;
      if (std::any_of(known.begin(), known.end(), [&](const char* k) { return key == k; })) continue;
      std::string message = "unknown option '" + std::string(key) + "'; known:";
      for (const char* k : known) message += std::string(" ") + k;
      throw BackendError(PLUGRAD_INVALID, known.size() ? message : message + " none");
    }
  }
  // Returns the value of key, or null if it was not given.
  const char* find(std::string_view key) const {
    for (uint32_t i = 0; given_ && i < given_->count; ++i)
      if (key == item(i).key) return item(i).value;
    return nullptr;
  }
  // Returns the value of key as an integer, or `otherwise` if it was not given; throws INVALID outside [low, high].
  int64_t integer(const char* key, int64_t otherwise, int64_t low, int64_t high) const {
    const char* text = find(key);
    if (!text) return otherwise;
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    if (end == text || *end || value < low || value > high)
      throw BackendError(PLUGRAD_INVALID, "option " + std::string(key) + "='" + text + "' is not an integer from " +
                                              std::to_string(low) + " to " + std::to_string(high));
    return value;
  }

 private:
  const plugrad_option& item(uint32_t i) const {
    return *reinterpret_cast<const plugrad_option*>(reinterpret_cast<const char*>(given_->items) + i * given_->stride);
  }
  const plugrad_options* given_;
};

// The constructor argument of a Backend.
struct Opening {
  const plugrad_host* host;  // lives as long as the process
  uint32_t index;            // 0 .. count - 1
  Options options;           // valid during the construction
};

// The number of devices, and the reason if it is 0.
struct DeviceCount {
  uint32_t devices = 1;
  std::string reason = {};
};

// --- The base class of a backend: one object per opened device, constructed from an Opening.
// Overrides are public and may throw, unless they are noexcept. abi.h states the threads and the full contract of each.
class Backend {
 public:
  virtual ~Backend() = default;

  // Returns the number of devices: 1 here. Hide it in the derived class to ask a driver.
  static DeviceCount count() { return {}; }
  // Returns the extension with this name, or null. Hide it to offer extensions. For the extension of native.h, derive from
  // NativeStreams instead.
  static const void* extension(std::string_view /*name*/) noexcept { return nullptr; }
  // Returns the description of the device. Called once, after construction.
  virtual plugrad_device_info info() const { return host_info("host memory"); }

  // Returns the kernels; if several rows serve a signature, the host gets the first. Called once, after construction. The
  // rows are copied; the object at a row's `own` has to live as long as the backend.
  virtual Rows kernels() const { return {}; }

  // Prepares the kernel of a row for a signature served by the row. Returns whether the host may have the kernel. Called
  // before resolve returns the kernel: compile a pipeline or open a library here. May take seconds, and may throw; an
  // exception counts as false. The host caches the result of resolve, so it asks once or a few times for each signature.
  // [any]
  virtual bool prepare(const KernelRow& /*row*/, const plugrad_signature& /*signature*/) { return true; }

  // Each of the following functions is null in the host's table unless it is overridden; abi.h states which functions belong
  // together.

  // Allocates device memory of `bytes` (above 0), aligned to info().alignment. Throws std::bad_alloc if there is no room.
  virtual plugrad_buffer* alloc(uint64_t /*bytes*/) { return nullptr; }
  // Frees a buffer. Nothing in flight uses the buffer.
  virtual void free(plugrad_buffer* /*buffer*/) noexcept {}
  // Stores how much device memory is free now and how much is installed.
  virtual void memory_info(uint64_t& /*free_bytes*/, uint64_t& /*total_bytes*/) {}
  // Allocates host memory for direct copies to and from the device.
  virtual void* pin(uint64_t /*bytes*/) { return nullptr; }
  // Frees memory returned by pin.
  virtual void unpin(void* /*address*/) noexcept {}
  // Submits a copy, in stream order; `stream` is null without ASYNC. If the target is plain host memory (PLUGRAD_HOST), it
  // returns when the bytes have arrived.
  virtual void copy(Stream* /*stream*/, const plugrad_copy& /*copy*/) {}
  // Creates a stream; `role` is a hint, PLUGRAD_COMPUTE_STREAM or PLUGRAD_COPY_STREAM.
  virtual std::unique_ptr<Stream> stream_create(uint32_t /*role*/) { return nullptr; }
  // Stores the number up to which nothing is in flight. Returns OK, DEVICE_ERROR while a failure waits for sync, or
  // DEVICE_LOST.
  virtual plugrad_status completed(Stream& /*stream*/, uint64_t& /*number*/) noexcept { return PLUGRAD_OK; }
  // Makes later work of `stream` wait for `number` of `other`, and raises `number` to the last number covered by the wait.
  virtual void wait(Stream& /*stream*/, Stream& /*other*/, uint64_t& /*number*/) {}
  // Waits for all submitted work. After a failure it stores the failure, clears it from the stream and throws DEVICE_ERROR.
  virtual void sync(Stream& /*stream*/, plugrad_failure& /*failure*/) {}

  // Returns the description of a device that computes in host memory.
  static plugrad_device_info host_info(std::string_view name, uint32_t capabilities = PLUGRAD_HOST_MEM) {
    plugrad_device_info info{};
    info.struct_size = sizeof info;
    info.capabilities = capabilities;
    info.alignment = 64;
    info.dlpack_type = 1;
    info.numa_node = -1;
    name.substr(0, sizeof info.name - 1).copy(info.name, sizeof info.name - 1);
    return info;
  }
};

// In a plugin built with this header, a plugrad_device* points to this object.
struct OpenDevice {
  const plugrad_host* host;
  std::unique_ptr<Backend> backend;
  std::vector<KernelRow> rows;
  std::vector<BoundKernel> kernels;  // one per row; constant after open

  static OpenDevice& of(plugrad_device* device) { return *reinterpret_cast<OpenDevice*>(device); }
  static OpenDevice& of(plugrad_stream* stream) { return *reinterpret_cast<Stream*>(stream)->device_; }
  plugrad_stream* own(std::unique_ptr<Stream> stream) {
    stream->device_ = this;
    return stream.release()->handle();
  }
  void collect_kernels() {
    const Rows all = backend->kernels();
    rows.assign(all.begin(), all.end());
    kernels.reserve(rows.size());
    for (const KernelRow& row : rows) kernels.push_back({{sizeof(plugrad_kernel), 0, row.run, row.workspace}, this, &row});
  }
};
template <class B> B& Call::backend() const {
  return static_cast<B&>(*static_cast<const BoundKernel*>(kernel_)->device->backend);
}
template <class T> const T& Call::own() const {
  return *static_cast<const T*>(static_cast<const BoundKernel*>(kernel_)->row->own);
}
// Returns the backend of a device of this plugin, such as plugrad_place::device.
template <class B> B& backend_of(plugrad_device* device) { return static_cast<B&>(*OpenDevice::of(device).backend); }

// --- Exceptions to statuses. Out of line, so that trampolines stay small.

[[gnu::noinline, gnu::cold]] inline plugrad_status report_exception(const plugrad_host* host) noexcept {
  const auto report = [host](plugrad_status status, const char* message) {
    host->report(host, status, message);
    return status;
  };
  try {
    throw;
  } catch (const BackendError& error) {
    return report(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return report(PLUGRAD_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return report(PLUGRAD_INTERNAL, error.what());
  } catch (...) {
    return report(PLUGRAD_INTERNAL, "an exception that is not a std::exception");
  }
}
inline plugrad_status report_exception(const plugrad_kernel* kernel) noexcept {
  return report_exception(static_cast<const BoundKernel*>(kernel)->device->host);
}
template <class Body> plugrad_status guarded(const plugrad_host* host, Body body) noexcept {
  try {
    body();
    return PLUGRAD_OK;
  } catch (...) {
    return report_exception(host);
  }
}

// --- The function table.

template <class B> plugrad_status count_devices(const plugrad_host* host, uint32_t* devices) noexcept {
  return guarded(host, [&] {
    const DeviceCount found = B::count();
    *devices = found.devices;
    if (!found.devices) host->report(host, PLUGRAD_OK, found.reason.c_str());
  });
}

// Hands a backend to the host as an opened device.
inline void open_backend(const plugrad_host* host, std::unique_ptr<Backend> backend, plugrad_device** out,
                         plugrad_device_info* info) {
  auto device = std::make_unique<OpenDevice>();
  device->host = host;
  device->backend = std::move(backend);
  device->collect_kernels();
  plugrad_device_info known = device->backend->info();
  known.struct_size = std::min<uint32_t>(info->struct_size, sizeof known);
  std::copy_n(reinterpret_cast<const char*>(&known), known.struct_size, reinterpret_cast<char*>(info));
  *out = reinterpret_cast<plugrad_device*>(device.release());
}

template <class B>
plugrad_status open_device(const plugrad_host* host, uint32_t index, const plugrad_options* options, plugrad_device** out,
                           plugrad_device_info* info) noexcept {
  return guarded(host, [&] {
    if (const uint32_t devices = B::count().devices; index >= devices)
      throw BackendError(PLUGRAD_INVALID,
                         "there is no device " + std::to_string(index) + ": count found " + std::to_string(devices));
    open_backend(host, std::make_unique<B>(Opening{host, index, Options(options)}), out, info);
  });
}

inline const plugrad_kernel* resolve_row(plugrad_device* handle, const plugrad_signature* signature) noexcept {
  const OpenDevice& device = OpenDevice::of(handle);
  const auto row = std::find_if(device.rows.begin(), device.rows.end(),  // libc++ 14 has no std::ranges::find_if
                                [&](const KernelRow& r) { return r.serves(*signature); });
  try {
    if (row == device.rows.end() || !device.backend->prepare(*row, *signature)) return nullptr;
  } catch (...) {
    return nullptr;  // resolve reports nothing
  }
  return &device.kernels[row - device.rows.begin()];
}

template <class> struct OwnerOf;
template <class Owner, class R, class... A> struct OwnerOf<R (Owner::*)(A...)> {
  using type = Owner;
};
template <class Owner, class R, class... A> struct OwnerOf<R (Owner::*)(A...) noexcept> {
  using type = Owner;
};

// Whether the author overrode a method: the type of its pointer then names the derived class.
template <auto Method>
inline constexpr bool kOverridden = !std::is_same_v<typename OwnerOf<decltype(Method)>::type, Backend>;
template <auto Method, class F> constexpr F entry(F function) { return kOverridden<Method> ? function : nullptr; }

struct Trampolines {
  static plugrad_status alloc(plugrad_device* device, uint64_t bytes, plugrad_buffer** buffer) noexcept {
    OpenDevice& d = OpenDevice::of(device);
    return guarded(d.host, [&] { *buffer = d.backend->alloc(bytes); });
  }
  static void free(plugrad_device* device, plugrad_buffer* buffer) noexcept { OpenDevice::of(device).backend->free(buffer); }
  static plugrad_status memory_info(plugrad_device* device, uint64_t* free_bytes, uint64_t* total) noexcept {
    OpenDevice& d = OpenDevice::of(device);
    return guarded(d.host, [&] { d.backend->memory_info(*free_bytes, *total); });
  }
  static plugrad_status pin(plugrad_device* device, uint64_t bytes, void** address) noexcept {
    OpenDevice& d = OpenDevice::of(device);
    return guarded(d.host, [&] { *address = d.backend->pin(bytes); });
  }
  static void unpin(plugrad_device* device, void* address) noexcept { OpenDevice::of(device).backend->unpin(address); }
  static plugrad_status copy(plugrad_stream* stream, const plugrad_copy* c) noexcept {
    OpenDevice& d = stream ? OpenDevice::of(stream) : OpenDevice::of(c->to.device ? c->to.device : c->from.device);
    return guarded(d.host, [&] { d.backend->copy(reinterpret_cast<Stream*>(stream), *c); });
  }
  static plugrad_status stream_create(plugrad_device* device, uint32_t role, plugrad_stream** stream) noexcept {
    OpenDevice& d = OpenDevice::of(device);
    return guarded(d.host, [&] { *stream = d.own(d.backend->stream_create(role)); });
  }
  static plugrad_status completed(plugrad_stream* stream, uint64_t* number) noexcept {
    return OpenDevice::of(stream).backend->completed(*reinterpret_cast<Stream*>(stream), *number);
  }
  static plugrad_status wait(plugrad_stream* stream, plugrad_stream* other, uint64_t* number) noexcept {
    OpenDevice& d = OpenDevice::of(stream);
    return guarded(d.host,
                   [&] { d.backend->wait(*reinterpret_cast<Stream*>(stream), *reinterpret_cast<Stream*>(other), *number); });
  }
  static plugrad_status sync(plugrad_stream* stream, plugrad_failure* failure) noexcept {
    OpenDevice& d = OpenDevice::of(stream);
    return guarded(d.host, [&] { d.backend->sync(*reinterpret_cast<Stream*>(stream), *failure); });
  }
};

class NativeStreams;                                                              // in native.hpp
template <class B> const void* native_extension(std::string_view name) noexcept;  // B derives from NativeStreams

template <class B> const void* find_extension(const char* name) noexcept {
  if constexpr (std::is_base_of_v<NativeStreams, B>)
    if (const void* native = native_extension<B>(name)) return native;
  return B::extension(name);
}

// Returns the function table of a backend. The macro below exports it; a program linked with the backend passes it to the
// host. unnamed_use: how the host may use device 0 if the program does not name the plugin (PLUGRAD_AS_DEFAULT, ...).
template <class B>
constexpr plugrad_backend backend_table(const char* name, const char* version = "",
                                        uint32_t unnamed_use = PLUGRAD_ONLY_BY_NAME) {
  static_assert(kOverridden<&B::alloc> == kOverridden<&B::free>, "override alloc and free, or neither");
  return {.struct_size = sizeof(plugrad_backend),
          .revision = PLUGRAD_REVISION,
          .layouts = plugrad_layouts,
          .name = name,
          .version = version,
          .count = count_devices<B>,
          .open = open_device<B>,
          .resolve = resolve_row,
          .get_extension = find_extension<B>,
          .alloc = entry<&B::alloc>(&Trampolines::alloc),
          .free = entry<&B::free>(&Trampolines::free),
          .memory_info = entry<&B::memory_info>(&Trampolines::memory_info),
          .pin = entry<&B::pin>(&Trampolines::pin),
          .unpin = entry<&B::unpin>(&Trampolines::unpin),
          .copy = entry<&B::copy>(&Trampolines::copy),
          .stream_create = entry<&B::stream_create>(&Trampolines::stream_create),
          .completed = entry<&B::completed>(&Trampolines::completed),
          .wait = entry<&B::wait>(&Trampolines::wait),
          .sync = entry<&B::sync>(&Trampolines::sync),
          .unnamed_use = unnamed_use,
          .reserved = 0};
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop

// Once per plugin, at namespace scope: exports Class as the backend `name`; backend_table gets the further arguments.
#define PLUGRAD_EXPORT_BACKEND(Class, name, ...) PLUGRAD_EXPORT_BACKEND_AS(plugrad_backend_v0, Class, name, __VA_ARGS__)
// The same with a different name of the exported function, so several backends can be linked into the same program.
#define PLUGRAD_EXPORT_BACKEND_AS(entry, Class, name, ...)                                                   \
  extern "C" PLUGRAD_EXPORT const plugrad_backend* entry(const plugrad_host*) {                              \
    static constexpr plugrad_backend table = plugrad::backend_table<Class>(name __VA_OPT__(, ) __VA_ARGS__); \
    return &table;                                                                                           \
  }
