// DLPack: exchanges tensors between libraries without a copy. https://dmlc.github.io/dlpack/latest/c_api.html
// The structs have the layout of DLPack 1 and are declared here, so that its headers need not be installed.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <optional>

namespace plugrad::dlpack {

struct Version {
  uint32_t major, minor;
};
inline constexpr Version kVersion{1, 0};

// DLDevice. Plain addresses: 1 CPU, 2 CUDA, 3 pinned by CUDA, 10 ROCm, 11 pinned by ROCm, 13 managed by CUDA.
struct Place {
  int32_t type, index;
};

// DLDataType. The codes in use: 0 integer, 2 floating, 4 bfloat, 5 complex, 6 bool.
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

// DLManagedTensor, the content of capsules named "dltensor".
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed* self);  // may be null
};

inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;  // bits of flags

// DLManagedTensorVersioned, the content of capsules named "dltensor_versioned".
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);  // may be null
  uint64_t flags;
  Array array;
};

// The order of an exchange relative to the work of the partner library. Ignored on devices without streams, which run
// synchronously.
class Order {
 public:
  // The host orders: an export waits on the host; an import assumes that the producer has already waited.
  static constexpr Order host() { return {true, {}}; }
  // The native stream of the partner library: a cudaStream_t for CUDA, where null is the legacy default stream. After an
  // export the stream waits for this device. After an import this device waits for all work submitted to the stream so far.
  // The host does not wait.
  static constexpr Order stream(void* native) { return {false, native}; }
  // No wait: the caller guarantees the order.
  static constexpr Order none() { return {false, {}}; }

  bool by_host() const { return by_host_; }
  std::optional<void*> native() const { return native_; }  // empty unless made by stream()

 private:
  constexpr Order(bool by_host, std::optional<void*> native) : by_host_(by_host), native_(native) {}
  bool by_host_;
  std::optional<void*> native_;
};

// Returns DLPack's type and index of a device, or of x's device. Throws Error (unsupported) for a device without a type.
PLUGRAD_API Place place_of(const Tensor& x);
PLUGRAD_API Place place_of(const Device& device);
// Opens and returns the device at a place. It opens devices of another type only where neither the plugin's name nor an open
// device reveals the type. Throws Error (invalid) where no plugin has such a device; the message names the place.
PLUGRAD_API Device device_of(Place place);
// Returns the device's native compute stream, or nothing where the device has no streams. A producer makes this stream wait
// for an array before it passes the array on; the import then takes Order::stream with this handle. Throws Error
// (unsupported) where the plugin does not support native streams.
PLUGRAD_API std::optional<void*> stream_of(Device device);

// Exports x's memory with its strides, without a copy and outside the graph. Where the plugin does not support native
// streams, the host waits instead of the stream of `order`. The consumer calls the deleter once, on any thread. The
// versioned form sets kReadOnly where x requires grad: external writes do not raise the version, so saved values cannot
// detect them. Throws Error as place_of does, and where x depends on an op known to have failed.
// Notes that the program keeps the address of a tensor's elements beyond an export: it may write to them at any time, so no
// compiled step keeps anything made of them.
PLUGRAD_API void note_address(const Tensor& x);
PLUGRAD_API Managed* export_managed(const Tensor& x, Order order = Order::host());
PLUGRAD_API ManagedVersioned* export_versioned(const Tensor& x, uint64_t flags = 0, Order order = Order::host());

// Returns a tensor over the partner library's memory, without a copy; read-only memory is copied instead. The deleter runs
// on the thread that releases the last tensor over the memory, after the device has finished with it. device: must have the
// array's DLPack type and index; by default the result of device_of. order: Order::none() and Order::host() promise a
// complete array; by default the import waits for the API's default stream, as the protocol demands. Throws Error (invalid)
// for an element type missing in dtypes.def, lanes other than 1, more than 8 extents, elements not aligned to their own size
// or another major version; Error (unsupported) for a stream where the plugin does not support native streams. If it throws,
// the caller still owns the array.
PLUGRAD_API Tensor import_managed(Managed* managed, Device device = {}, Order order = Order::stream(nullptr));
PLUGRAD_API Tensor import_versioned(ManagedVersioned* managed, Device device = {}, Order order = Order::stream(nullptr));

}  // namespace plugrad::dlpack
