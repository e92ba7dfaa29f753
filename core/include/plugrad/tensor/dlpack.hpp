// DLPack: tensors pass between libraries without a copy. https://dmlc.github.io/dlpack/latest/c_api.html; the structs are
// laid out as its version 1 has them and are declared here, so that nothing has to be installed for them.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <optional>

namespace plugrad::dlpack {

struct Version {
  uint32_t major, minor;
};
inline constexpr Version kVersion{1, 0};

// DLDevice. Types with plain addresses: 1 CPU, 2 CUDA, 3 pinned by CUDA, 10 ROCm, 11 pinned by ROCm, 13 managed by CUDA.
struct Place {
  int32_t type, index;
};

// DLDataType: codes 0 integer, 2 floating, 6 bool.
struct ElementType {
  uint8_t code, bits;
  uint16_t lanes;
};

// DLTensor. strides are in elements; null means row-major.
struct Array {
  void* data;
  Place device;
  int32_t ndim;
  ElementType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

// DLManagedTensor, which capsules named "dltensor" hold.
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed* self);  // may be null
};

inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;  // of flags

// DLManagedTensorVersioned, which capsules named "dltensor_versioned" hold.
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);  // may be null
  uint64_t flags;
  Array array;
};

// What an exchange comes before or after on a device with streams. Without effect on others, where nothing is ever late.
class Order {
 public:
  // The host waits: what is exported is complete, or the producer of what is imported has waited.
  static constexpr Order host() { return {true, {}}; }
  // A stream of the device's own API in which the other library works: a cudaStream_t for CUDA, null for its legacy default
  // stream. An export makes the stream wait, an import waits for what the stream was given so far; the host waits for
  // neither.
  static constexpr Order stream(void* native) { return {false, native}; }
  // The caller has seen to it.
  static constexpr Order none() { return {false, {}}; }

  bool by_host() const { return by_host_; }
  std::optional<void*> native() const { return native_; }  // nothing unless it is a stream

 private:
  constexpr Order(bool by_host, std::optional<void*> native) : by_host_(by_host), native_(native) {}
  bool by_host_;
  std::optional<void*> native_;
};

// Where x lies, as DLPack names it. Throws Error (unsupported) for a device without a DLPack type.
PLUGRAD_API Place place_of(const Tensor& x);
// The device of ours for a place. Opens it, and others only where neither the name of a plugin nor a device of it that is
// open tells its type. Throws Error (invalid) where no plugin brings one; the message names the place.
PLUGRAD_API Device device_of(Place place);
// The native stream on which this device computes. A producer makes it wait before it hands over an array, which is then
// imported with Order::stream of this handle. Nothing where the device has no streams. Throws Error (unsupported) where the
// plugin does not know native streams.
PLUGRAD_API std::optional<void*> stream_of(Device device);

// x's memory for another library, outside the graph: strides and all, nothing is copied. Where the plugin knows no native
// streams the host waits instead of the stream of `order`. The deleter may run on any thread, and has to run once. The
// versioned form says kReadOnly where x wants gradients: external writes do not raise the version that saved values check.
// Throws Error as place_of, and where something that x was computed from is known to have failed.
PLUGRAD_API Managed* export_managed(const Tensor& x, Order order = Order::host());
PLUGRAD_API ManagedVersioned* export_versioned(const Tensor& x, uint64_t flags = 0, Order order = Order::host());

// A tensor over the other library's memory, without a copy; the deleter runs when the last tensor over it is dropped, on
// that thread, once the device has done with it. Read-only memory is copied instead. device: one whose DLPack type and index
// are the array's; by default the one that device_of returns. order: Order::none() and Order::host() say that the array is
// complete; by default the import comes after the API's default stream, as the protocol has it. Throws Error (invalid) for
// dtypes other than f32, f64, i64 and bool, lanes, more than 8 extents, elements not aligned to their own size, another
// major version; (unsupported) for a stream on a device whose plugin knows no native streams: the array is then the caller's
// still.
PLUGRAD_API Tensor import_managed(Managed* managed, Device device = {}, Order order = Order::stream(nullptr));
PLUGRAD_API Tensor import_versioned(ManagedVersioned* managed, Device device = {}, Order order = Order::stream(nullptr));

}  // namespace plugrad::dlpack
