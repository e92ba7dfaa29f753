// The layout hash covers name, offset and size of every field of abi.h, struct by struct, then the fields of each revision.
#pragma once
#include <plugrad/sdk/abi.h>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

constexpr uint64_t mix_layout(uint64_t hash, const char* name, uint64_t offset, uint64_t size) {
  constexpr uint64_t kPrime = 0x100000001b3u;  // FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/
  for (; *name; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * kPrime;
  return ((hash ^ offset) * kPrime ^ size) * kPrime;
}

constexpr uint64_t layout_hash(unsigned revision) {
  uint64_t h = 0xcbf29ce484222325u;
#define PLUGRAD_FIELD(type, field) \
  h = mix_layout(h, #type "." #field, offsetof(plugrad_##type, field), sizeof(plugrad_##type::field));
#define F PLUGRAD_FIELD
  F(view, buffer) F(view, offset) F(view, count) F(view, dtype) F(view, rank) F(view, layout) F(view, reserved)
  F(view, shape) F(view, strides)
  F(op, struct_size) F(op, opcode) F(op, number) F(op, views) F(op, attributes) F(op, outputs) F(op, inputs) F(op, flags)
  F(op, workspace) F(op, workspace_offset) F(op, workspace_bytes)
  F(axis, struct_size) F(axis, axis)
  F(sort, struct_size) F(sort, axis) F(sort, descending)
  F(convolution, struct_size) F(convolution, reserved) F(convolution, groups) F(convolution, stride)
  F(convolution, padding) F(convolution, dilation)
  F(pool, struct_size) F(pool, reserved) F(pool, size) F(pool, stride) F(pool, padding) F(pool, dilation)
  F(norm, struct_size) F(norm, reserved) F(norm, epsilon)
  F(scan, struct_size) F(scan, axis) F(scan, reverse)
  F(attention, struct_size) F(attention, causal) F(attention, scale)
  F(sgd, struct_size) F(sgd, nesterov) F(sgd, momentum) F(sgd, weight_decay)
  F(adam, struct_size) F(adam, decoupled) F(adam, beta1) F(adam, beta2) F(adam, epsilon) F(adam, weight_decay)
  F(kernel, struct_size) F(kernel, reserved) F(kernel, run) F(kernel, workspace)
  F(signature, struct_size) F(signature, opcode) F(signature, flags) F(signature, layout) F(signature, outputs)
  F(signature, inputs) F(signature, dtypes) F(signature, attributes)
  F(place, struct_size) F(place, kind) F(place, device) F(place, buffer) F(place, offset)
  F(copy, struct_size) F(copy, reserved) F(copy, number) F(copy, bytes) F(copy, to) F(copy, from)
  F(failure, struct_size) F(failure, status) F(failure, first) F(failure, last)
  F(option, struct_size) F(option, reserved) F(option, key) F(option, value)
  F(options, struct_size) F(options, count) F(options, stride) F(options, items)
  F(device_info, struct_size) F(device_info, capabilities) F(device_info, alignment) F(device_info, memory)
  F(device_info, dlpack_type) F(device_info, dlpack_index) F(device_info, numa_node) F(device_info, reserved)
  F(device_info, name) F(device_info, identity)
  F(host, struct_size) F(host, revision) F(host, layouts) F(host, report) F(host, log) F(host, get_extension)
  F(backend, struct_size) F(backend, revision) F(backend, layouts) F(backend, name) F(backend, version) F(backend, count)
  F(backend, open) F(backend, resolve) F(backend, get_extension) F(backend, alloc) F(backend, free)
  F(backend, memory_info) F(backend, pin) F(backend, unpin) F(backend, copy) F(backend, stream_create)
  F(backend, completed) F(backend, wait) F(backend, sync) F(backend, unnamed_use) F(backend, reserved)
#undef F
#undef PLUGRAD_FIELD
  (void)revision;  // revision 1 appends its fields here, behind `if (revision == 0) return h;`
  return h;
}
static_assert(PLUGRAD_LAYOUT_0 == layout_hash(0), "a field moved: a new major, or (before the first release) a new hash");

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
