// The extension "plugrad.private/0" of a plugin: its own ops. Programs call them by name. C11 and C++20.
//
// The host resolves and runs a private op like an op of ops.def: it asks `resolve` for a kernel by the opcode and the dtypes
// of all operands, and calls the kernel with views, attributes and a workspace. The plugin and the program agree on the
// results; ops.md does not define them. The host runs a private op only where a program calls it, never composes it of
// other ops, and never runs it on another device. It makes dense copies of operands as for the ops of ops.def. An output
// overlaps no other operand.
//
// Getting it  backend->get_extension(PLUGRAD_PRIVATE) returns a plugrad_private_ops, or null. The plugin owns it; it is
//             constant and lives as long as the process, and applies to all devices of the plugin.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_PRIVATE "plugrad.private/0"

typedef struct plugrad_private_op {
  uint32_t struct_size;
  uint32_t opcode;           // from PLUGRAD_PRIVATE_OPS on; unique in the plugin
  const char* name;          // "scale_add": [a-z][a-z0-9_]*; unique in the plugin
  uint16_t outputs, inputs;  // at least one output; together at most PLUGRAD_MAX_OPERANDS
  uint32_t attributes;       // bytes of the op's attributes, a struct that begins with its size, a uint32_t; 0: none
} plugrad_private_op;

typedef struct plugrad_private_ops {
  uint32_t struct_size;
  uint32_t count;
  uint64_t stride;  // bytes from one item to the next
  const plugrad_private_op* items;
} plugrad_private_ops;

#ifdef __cplusplus
}
#endif
