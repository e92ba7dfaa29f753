#include <plugrad/tensor/memory.hpp>

#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/tensor/checked.hpp>
#include <core/tensor/impl.hpp>
#include <core/tensor/reach.hpp>

#include <algorithm>

namespace plugrad {
namespace {
constexpr const char* kName = "tensor_over";

[[noreturn]] void refuse_view(const std::string& why) { throw Error(Code::invalid, std::string("[") + kName + "] " + why); }

// Returns a view without a buffer. Throws Error (invalid) unless its elements lie within `bytes` bytes.
plugrad_view view_within(uint64_t bytes, uint8_t dtype, uint64_t byte_offset, const Shape& shape, const Shape& strides) {
  if (shape.rank() != strides.rank())
    refuse_view("shape " + shape.text() + " and strides " + strides.text() +
                " differ in rank: give a stride for each extent");
  plugrad_view v = dense_view(shape, dtype, 1);
  if (!v.count) return v;
  std::ranges::copy(strides, v.strides);
  const uint64_t size = dtype_size(dtype);
  if (byte_offset % size)
    refuse_view("byte offset " + std::to_string(byte_offset) + " is not a multiple of the " + std::to_string(size) +
                " bytes of an element");
  const Reach reach = reach_of(v, kName);
  if (byte_offset > bytes || byte_offset + static_cast<uint64_t>(reach.above) > bytes ||
      static_cast<int64_t>(byte_offset) + reach.below < 0)
    refuse_view("shape " + shape.text() + " with strides " + strides.text() + " from byte " + std::to_string(byte_offset) +
                " on leaves the memory of " + std::to_string(bytes) + " bytes");
  return v;
}
}  // namespace

Memory::Memory() noexcept = default;
Memory::Memory(Device device, uint64_t bytes) {
  if (bytes > INT64_MAX) throw Error(Code::invalid, "[memory] more bytes than can be addressed: " + std::to_string(bytes));
  storage_ = allocate(state_of(device), bytes, 0);
}
Memory::Memory(Ref<Storage> storage) noexcept : storage_(std::move(storage)) {}
Memory::Memory(const Memory& other) = default;
Memory::Memory(Memory&& other) noexcept = default;
Memory& Memory::operator=(const Memory& other) = default;
Memory& Memory::operator=(Memory&& other) noexcept = default;
Memory::~Memory() = default;

namespace {
Storage& asked(const Ref<Storage>& storage, const char* what) {
  if (storage) return *storage;
  throw Error(Code::invalid, std::string("[") + what + "] the memory is undefined: allocate it first");
}
}  // namespace

Device Memory::device() const { return Device(asked(storage_, "memory").device); }
uint64_t Memory::bytes() const { return asked(storage_, "memory").size; }
bool Memory::is_shared() const { return asked(storage_, "memory").refs.load(std::memory_order_acquire) > 1; }

Memory memory_of(const Tensor& x) {
  require_defined(x, "memory_of");
  stand_ins::require_memory(*storage_of(x), "a handle of memory");
  return Memory(x.impl().storage);
}
bool shares_memory(const Tensor& x) {
  require_defined(x, "shares_memory");
  return storage_of(x)->refs.load(std::memory_order_acquire) > 1;
}
uint64_t byte_offset_of(const Tensor& x) {
  require_defined(x, "byte_offset_of");
  return view_of(x).offset - storage_of(x)->offset;
}

Tensor tensor_over(const Memory& memory, DType dtype, uint64_t byte_offset, const Shape& shape, const Shape& strides) {
  Storage& storage = asked(memory.storage_, kName);
  DeviceState& device = *storage.device;
  plugrad_view v = view_within(storage.size, id_of(dtype), byte_offset, shape, strides);
  v.buffer = storage.buffer;
  v.offset = storage.offset + (v.count ? byte_offset : 0);
  set_layout(v, device.info.alignment);
  Ref<Impl> impl(new (local().objects.get()) Impl(device, memory.storage_));
  impl->view = v;
  return Tensor(std::move(impl));
}

namespace {
// Axes of a call: an extent, and a stride for each operand.
struct Axis {
  int64_t extent;
  std::vector<int64_t> strides;
};

// Whether `inner` follows `outer` in all operands, as if both were one axis.
bool are_one(const Axis& outer, const Axis& inner) {
  for (size_t k = 0; k < inner.strides.size(); ++k) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(inner.strides[k], inner.extent, &reach) || outer.strides[k] != reach) return false;
  }
  return true;
}

std::vector<Axis> merged(std::span<const int64_t> sizes, std::span<const StridedOperand> operands) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    Axis axis{sizes[d], {}};
    for (const StridedOperand& each : operands) axis.strides.push_back(each.strides[d]);
    if (sizes[d] == 1) continue;
    if (axes.empty() || !are_one(axes.back(), axis)) {
      axes.push_back(std::move(axis));
      continue;
    }
    axes.back().extent *= axis.extent;
    axes.back().strides = std::move(axis.strides);
  }
  return axes;
}

void require_sizes(std::span<const int64_t> sizes, std::span<const StridedOperand> operands) {
  for (const StridedOperand& each : operands)
    if (each.strides.size() != sizes.size())
      refuse_view("an operand has " + std::to_string(each.strides.size()) + " strides for " + std::to_string(sizes.size()) +
                  " sizes: give a stride for each size");
  int64_t count = 1;
  const bool is_empty = std::ranges::count(sizes, 0) > 0;
  for (const int64_t size : sizes)
    if (size < 0 || (!is_empty && __builtin_mul_overflow(count, size, &count)))
      refuse_view("sizes of " + std::to_string(size) + " and others: 0 or more expected, and fewer than 2^63 elements");
}
}  // namespace

std::vector<std::vector<Tensor>> tensors_over(std::span<const int64_t> sizes, std::span<const StridedOperand> operands) {
  require_sizes(sizes, operands);
  std::vector<std::vector<Tensor>> calls;
  if (std::ranges::count(sizes, 0)) return calls;
  const std::vector<Axis> axes = merged(sizes, operands);
  const size_t outer = axes.size() > PLUGRAD_MAX_RANK ? axes.size() - PLUGRAD_MAX_RANK : 0;
  std::vector<int64_t> place(outer);
  for (;;) {
    std::vector<Tensor>& call = calls.emplace_back();
    for (size_t k = 0; k < operands.size(); ++k) {
      const StridedOperand& each = operands[k];
      auto offset = static_cast<int64_t>(each.byte_offset);
      bool is_outside = offset < 0;
      for (size_t d = 0; d < outer; ++d) {
        int64_t step = static_cast<int64_t>(dtype_size(id_of(each.dtype)));
        is_outside |= __builtin_mul_overflow(step, axes[d].strides[k], &step);
        is_outside |= __builtin_mul_overflow(step, place[d], &step) || __builtin_add_overflow(offset, step, &offset);
      }
      if (is_outside || offset < 0) refuse_view("an element lies outside the memory");
      Shape shape, strides;
      for (size_t d = outer; d < axes.size(); ++d) shape.push_back(axes[d].extent), strides.push_back(axes[d].strides[k]);
      call.push_back(tensor_over(each.memory, each.dtype, static_cast<uint64_t>(offset), shape, strides));
    }
    size_t d = outer;
    while (d-- > 0 && ++place[d] == axes[d].extent) place[d] = 0;
    if (d == static_cast<size_t>(-1)) return calls;
  }
}

}  // namespace plugrad
