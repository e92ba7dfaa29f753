#include <plugrad/tensor/dlpack.hpp>

#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/runtime/memory/import.hpp>
#include <core/runtime/observe/observer.hpp>
#include <core/runtime/plugins/registry.hpp>
#include <core/runtime/streams/native.hpp>
#include <core/tensor/impl.hpp>
#include <core/tensor/reach.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string>
#include <utility>

namespace plugrad::dlpack {
namespace {

constexpr int32_t kCpu = 1;

bool has_addresses(int32_t type) { return type == kCpu || type == 2 || type == 3 || type == 10 || type == 11 || type == 13; }

std::string text(Place place) { return "type " + std::to_string(place.type) + ", index " + std::to_string(place.index); }

Place place_of_device(const DeviceState& device) {
  if (!device.info.dlpack_type)
    throw Error(Code::unsupported, "[dlpack] device " + device.name + " has no DLPack type: copy to the cpu first");
  return {device.info.dlpack_type, device.info.dlpack_index};
}

// The customary name of plugins for devices of a type, or ""; plugins of this name are asked first.
std::string usual_name(int32_t type) {
  constexpr std::pair<int32_t, const char*> kNames[] = {{kCpu, "cpu"}, {2, "cuda"},  {4, "opencl"},  {7, "vulkan"},
                                                        {8, "metal"},  {10, "rocm"}, {14, "oneapi"}, {15, "webgpu"}};
  const auto found = std::ranges::find(kNames, type, &std::pair<int32_t, const char*>::first);
  return found == std::end(kNames) ? "" : found->second;
}

bool is_at(const DeviceState& device, Place place) {
  return device.info.dlpack_type == place.type && device.info.dlpack_index == place.index;
}

ElementType element_type(const DTypeInfo& info) { return {info.dlpack_code, static_cast<uint8_t>(8 * info.size), 1}; }

DType dtype_of(ElementType type) {
  std::string known;
  for (const DType each : kEveryDType) {
    const DTypeInfo& info = *dtype_info(static_cast<uint8_t>(each));
    if (type.code == info.dlpack_code && type.bits == 8 * info.size && type.lanes == 1) return each;
    known += (known.empty() ? "" : ", ") + std::string(info.label);
  }
  throw Error(Code::invalid, "[dlpack] elements of type code " + std::to_string(type.code) + " with " +
                                 std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) +
                                 " lanes are not supported: convert them to one of " + known + " first");
}

// --- Export.

struct Exported {
  explicit Exported(const Tensor& x) : tensor(x.detach()) {
    stand_ins::require_memory(*storage_of(tensor), "another library");
    ++storage_of(tensor)->exports;
    ++storage_of(tensor)->shared;
  }
  Exported(const Exported&) = delete;
  ~Exported() { --storage_of(tensor)->shared; }

  Tensor tensor;  // detached
  std::array<int64_t, PLUGRAD_MAX_RANK> shape, strides;
};

template <class M> struct Holder : Exported {
  using Exported::Exported;
  M managed;
};

template <class M> void release(M* managed) { delete static_cast<Holder<M>*>(static_cast<Exported*>(managed->context)); }

void order_export(const Tensor& x, Order order) {
  if (order.by_host()) return x.device().sync();
  if (order.native() && plugrad::device_of(x).compute) native::release(*storage_of(x), *order.native());
}

template <class M> M* exported(const Tensor& x, Order order) {
  require_defined(x, "dlpack");
  observe::unrepeatable("gives a tensor to another library", "return the tensor, and pass it on afterwards");
  const Place place = place_of_device(plugrad::device_of(x));
  order_export(x, order);
  auto holder = std::make_unique<Holder<M>>(x);
  const plugrad_view& v = view_of(x);
  std::copy_n(v.shape, v.rank, holder->shape.begin());
  std::copy_n(v.strides, v.rank, holder->strides.begin());
  char* base = reinterpret_cast<char*>(v.buffer);
  Array& out = holder->managed.array;
  // Some libraries ignore byte_offset, so it is 0 wherever data is an address.
  const bool addresses = has_addresses(place.type);
  out = {addresses ? base + v.offset : base,
         place,
         v.rank,
         element_type(*dtype_info(v.dtype)),
         holder->shape.data(),
         holder->strides.data(),
         addresses ? 0 : v.offset};
  holder->managed.context = static_cast<Exported*>(holder.get());
  holder->managed.deleter = release<M>;
  return &holder.release()->managed;
}

// --- Import.

plugrad_view imported_view(const Array& array) {
  if (array.ndim < 0 || array.ndim > PLUGRAD_MAX_RANK)
    throw Error(Code::invalid, "[dlpack] rank " + std::to_string(array.ndim) + " is out of range: 0 to " +
                                   std::to_string(PLUGRAD_MAX_RANK) + " expected");
  if (array.ndim && !array.shape) throw Error(Code::invalid, "[dlpack] the array has a rank, but no shape");
  const Shape shape(std::span(array.shape, static_cast<size_t>(array.ndim)));
  plugrad_view v = dense_view(shape, static_cast<uint8_t>(dtype_of(array.dtype)), 1);
  if (array.strides) std::copy_n(array.strides, array.ndim, v.strides);
  return v;
}

void release_now(Imported::Release release, void* context) {
  if (release) release(context);
}

void require_memory_of(DeviceState& state, const Array& array) {
  observe::unrepeatable("takes a tensor from another library", "take it before, and pass it as an argument");
  if (!is_at(state, array.device))
    throw Error(Code::invalid,
                "[dlpack] the array lies on the device with DLPack " + text(array.device) + ", which is not " + state.name);
  if (!has_addresses(array.device.type))
    throw Error(Code::unsupported, "[dlpack] memory of DLPack " + text(array.device) + " has no addresses");
  state.require_open();
}

// Calls f with each element of a view of bytes in host memory, row-major.
template <class F> void for_each_byte(const plugrad_view& v, uintptr_t at, F f, int axis = 0) {
  if (axis == v.rank) return f(*reinterpret_cast<const uint8_t*>(at));
  for (int64_t i = 0; i < v.shape[axis]; ++i)
    for_each_byte(v, at + static_cast<uintptr_t>(i * v.strides[axis]), f, axis + 1);
}
// Returns whether a view of bools holds bytes other than 0 and 1. Some libraries permit such bytes, with the meaning true.
bool has_other_bytes(const plugrad_view& v, uintptr_t at) {
  uint8_t bits = 0;
  for_each_byte(v, at, [&](uint8_t byte) { bits |= byte; });
  return bits > 1;
}

// Returns the elements as bools of 0 and 1, in plugrad's own memory.
Tensor truths_of(DeviceState& state, const plugrad_view& v, const plugrad_view& like, uintptr_t at) {
  Tensor truths = empty_like(Op::COPY, state, like, v.dtype);
  uint8_t* next = reinterpret_cast<uint8_t*>(view_of(truths).buffer) + view_of(truths).offset;
  for_each_byte(v, at, [&](uint8_t byte) { *next++ = byte != 0; });
  return truths;
}

// The address of an array's first element. Throws Error (invalid) for missing or misaligned memory.
uintptr_t first_of(const Array& array, const plugrad_view& v) {
  if (!array.data) throw Error(Code::invalid, "[dlpack] the array has elements, but no memory: data is null");
  const uintptr_t first = reinterpret_cast<uintptr_t>(array.data) + array.byte_offset;
  if (first % static_cast<uint64_t>(dtype_size(v.dtype)))
    throw Error(Code::invalid, "[dlpack] the elements are not aligned to their own size: copy them first");
  return first;
}

Tensor import_array(const Array& array, Device wanted, Order order, bool copied, Imported::Release release, void* context) {
  const Device device = wanted.defined() ? wanted : device_of(array.device);
  DeviceState& state = device.state();
  require_memory_of(state, array);
  plugrad_view v = imported_view(array);
  if (!v.count) {
    Tensor nothing = empty(state, shape_of(v), v.dtype);
    release_now(release, context);
    return nothing;
  }
  const uintptr_t first = first_of(array, v);
  const Reach reach = reach_of(v, "dlpack");
  const uintptr_t lowest = first + static_cast<uintptr_t>(reach.below);
  const uintptr_t base = lowest & ~(static_cast<uintptr_t>(state.info.alignment) - 1);
  // The caller owns the memory until no further step can fail.
  const plugrad_view like = dense_view(shape_of(v), v.dtype, state.info.alignment);
  if (is_boolean(v.dtype) && state.host_memory() && !state.compute && has_other_bytes(v, first)) {
    Tensor truths = truths_of(state, v, like, first);
    release_now(release, context);
    return truths;
  }
  Tensor own = copied ? empty_like(Op::COPY, state, like, v.dtype) : Tensor();
  const MemoryPiece piece{base, lowest - base, static_cast<uint64_t>(reach.above - reach.below)};
  Ref<Storage> storage = import_memory(state, piece, order.native());
  v.buffer = storage->buffer;
  v.offset = first - base;
  set_layout(v, state.info.alignment);
  Storage& memory = *storage;
  Ref<Impl> impl(new (local().objects.get()) Impl(state, std::move(storage)));
  impl->view = v;
  Tensor whole{std::move(impl)};
  if (!copied) {
    own_memory(memory, release, context);
    return whole;
  }
  own.copy_(whole);
  whole = {};
  release_now(release, context);
  return own;
}

template <class M> void call_deleter(void* managed) {
  M* own = static_cast<M*>(managed);
  if (own->deleter) own->deleter(own);
}
}  // namespace

Place place_of(const Tensor& x) {
  require_defined(x, "dlpack");
  return place_of_device(plugrad::device_of(x));
}

Place place_of(const Device& device) { return place_of_device(device.state()); }

Device device_of(Place place) {
  if (DeviceState* found = Registry::get().find_at(place.type, place.index, usual_name(place.type))) return Device(found);
  throw Error(Code::invalid, "[dlpack] no plugin has the device of this array: DLPack " + text(place));
}

std::optional<void*> stream_of(Device device) {
  if (!device.state().compute) return std::nullopt;
  return native::handle(device.state());
}

void note_address(const Tensor& x) {
  require_defined(x, "dlpack");
  stand_ins::require_memory(*storage_of(x), "an address");
  ++storage_of(x)->shared;
}

Managed* export_managed(const Tensor& x, Order order) { return exported<Managed>(x, order); }

ManagedVersioned* export_versioned(const Tensor& x, uint64_t flags, Order order) {
  ManagedVersioned* managed = exported<ManagedVersioned>(x, order);
  managed->version = kVersion;
  managed->flags = flags | (x.requires_grad() ? kReadOnly : 0);
  return managed;
}

Tensor import_managed(Managed* managed, Device device, Order order) {
  return import_array(managed->array, device, order, false, call_deleter<Managed>, managed);
}

Tensor import_versioned(ManagedVersioned* managed, Device device, Order order) {
  if (managed->version.major != kVersion.major)
    throw Error(Code::invalid, "[dlpack] major version " + std::to_string(managed->version.major) +
                                   " is not supported: " + std::to_string(kVersion.major) + " expected");
  return import_array(managed->array, device, order, managed->flags & kReadOnly, call_deleter<ManagedVersioned>, managed);
}

}  // namespace plugrad::dlpack
