// The extension "plugrad.private/0" of a plugin: ops of its own, which programs call by name. C11 and C++20.
//
// A private op is resolved and run like any other: the host asks `resolve` for a kernel by the opcode and the dtypes of all
// operands, and calls it with views, attributes and a workspace. What it computes is between plugin and program; ops.md says
// nothing of it. The host never runs one by itself, composes none of other ops, and runs none on another device. It makes
// dense copies of operands as for other ops. An output overlaps no other operand.
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
  uint32_t opcode;           // from PLUGRAD_PRIVATE_OPS on; of no other op of the plugin
  const char* name;          // "scale_add": [a-z][a-z0-9_]*; of no other op of the plugin
  uint16_t outputs, inputs;  // at least one output; together at most PLUGRAD_MAX_OPERANDS
  uint32_t attributes;       // bytes of the op's attributes, a struct whose first member, a uint32_t, is its size; 0: none
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
