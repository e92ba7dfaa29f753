// Operands of ops: views of memory with their storages, and scalars.
#pragma once
#include <core/runtime/memory/storage.hpp>
#include <plugrad/sdk/dtypes.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plugrad {

// A scalar operand, passed to the device by value.
struct Immediate {
  plugrad_view view;
};

inline Immediate immediate(uint8_t dtype, double real, int64_t integer) {
  Immediate made;  // uninitialised beyond rank, like every view
  plugrad_view& v = made.view;
  v.buffer = nullptr;
  v.offset = is_inexact(dtype) ? std::bit_cast<uint64_t>(real) : static_cast<uint64_t>(integer);
  v.count = 1;
  v.dtype = dtype;
  v.rank = 0;
  v.layout = PLUGRAD_IMMEDIATE;
  for (uint8_t& each : v.reserved) each = 0;
  return made;
}

template <class T>
concept BecomesOperand = requires(const T& x) { operand(x); };
template <class T>
concept SizedStruct = requires(const T& x) { x.struct_size; };

// An operand of a call: its view and its storage. It owns neither. The function operand(x) converts a tensor to an Operand.
// Only slow paths ask for the storage: if the fast path loaded it, it would occupy a register during the kernel.
class Operand {
 public:
  using StorageOf = Storage* (*)(const void* owner);

  Operand(const plugrad_view& as, const void* owner, StorageOf storage_of)
      : view(&as), owner_(owner), storage_of_(storage_of) {}
  Operand(const plugrad_view& as, Storage* storage) : Operand(as, storage, itself) {}
  Operand(const Immediate& number) : Operand(number.view, nullptr) {}
  template <BecomesOperand T> [[gnu::always_inline]] Operand(const T& x) : Operand(operand(x)) {}

  const plugrad_view* view;
  Storage* storage() const { return storage_of_(owner_); }  // null for an immediate

 private:
  static Storage* itself(const void* storage) { return static_cast<Storage*>(const_cast<void*>(storage)); }

  const void* owner_;
  StorageOf storage_of_;
};

// The views of all operands of a call, outputs first.
template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline auto views_of(const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs]) {
  std::array<const plugrad_view*, kOutputs + kInputs> all;
  for (size_t i = 0; i < kOutputs; ++i) all[i] = outputs[i].view;
  for (size_t i = 0; i < kInputs; ++i) all[kOutputs + i] = inputs[i].view;
  return all;
}
// Their storages.
template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline auto storages_of(const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs]) {
  std::array<Storage*, kOutputs + kInputs> all;
  for (size_t i = 0; i < kOutputs; ++i) all[i] = outputs[i].storage();
  for (size_t i = 0; i < kInputs; ++i) all[kOutputs + i] = inputs[i].storage();
  return all;
}

// An op's attributes: null, or a struct of the contract. The struct's first member is its size.
struct Attributes {
  Attributes() = default;
  template <SizedStruct T> Attributes(const T& x) : block(&x) {}
  const void* block = nullptr;
};

// "(2, 3)"
std::string extents_text(std::span<const int64_t> extents);
// The count of a view if the product of its extents overflows: 0 if an extent is 0. Throws Error (invalid) otherwise.
int64_t count_beyond_range(const plugrad_view& v);
// The bytes of its elements. Throws Error (invalid) beyond 2^63 - 1; the message names the op.
uint64_t dense_bytes(uint32_t opcode, const plugrad_view& v);

// Sets count, strides and layout of a dense view from its rank, shape and offset. Throws Error (invalid) for a view of more
// than 2^63 - 1 elements. Only this function and set_layout count the elements of views, also for shapes from files.
inline void set_dense(plugrad_view& v, uint64_t alignment) {
  v.count = 1;
  bool overflow = false;
  for (int i = v.rank; i-- > 0;) {
    v.strides[i] = v.count;
    overflow |= __builtin_mul_overflow(v.count, v.shape[i], &v.count);
  }
  if (overflow) [[unlikely]]
    v.count = count_beyond_range(v);
  v.layout = static_cast<uint16_t>((v.offset & (alignment - 1) ? PLUGRAD_UNALIGNED : 0) |
                                   (v.count > INT32_MAX ? PLUGRAD_WIDE_INDEX : 0));
}

}  // namespace plugrad
