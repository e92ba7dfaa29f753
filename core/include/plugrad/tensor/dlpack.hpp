// DLPack: tensors pass between libraries without a copy. https://dmlc.github.io/dlpack/latest/c_api.html; the structs are laid out
// as its version 1 has them and are declared here, so that nothing has to be installed for them.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>

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

// Where x lies, as DLPack names it. Throws Error (unsupported) for a device without a DLPack type.
PLUGRAD_API Place place_of(const Tensor& x);
// The device of ours for a place. Throws Error (invalid) where no plugin brings one; the message names it.
PLUGRAD_API Device device_of(Place place);

// x's memory for another library, outside the graph: strides and all, nothing is copied. Waits for what was submitted to x's
// device. The deleter may run on any thread, and has to run once. The versioned form says kReadOnly where x wants gradients:
// a write from outside is none that saved values notice. Throws Error as place_of.
PLUGRAD_API Managed* export_managed(const Tensor& x);
PLUGRAD_API ManagedVersioned* export_versioned(const Tensor& x, uint64_t flags = 0);

// A tensor over the other library's memory, without a copy; the deleter runs when the last tensor over it is dropped, on that
// thread. What the array holds must be complete. Read-only memory is copied instead. device: one whose DLPack type and index are the array's; by default the one that device_of answers. Throws
// Error (invalid) for dtypes other than f32, f64, i64 and bool, lanes, more than 8 extents, elements not aligned to their own
// size, another major version: the array is then the caller's still.
PLUGRAD_API Tensor import_managed(Managed* managed, Device device = {});
PLUGRAD_API Tensor import_versioned(ManagedVersioned* managed, Device device = {});

}  // namespace plugrad::dlpack
