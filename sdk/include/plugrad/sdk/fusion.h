// The extension "plugrad.fusion/0" of a plugin: several ops in one call. C11 and C++20.
//
// A fusion is a straight line of instructions, each an elementwise, copy, reduction or update op of ops.def; a head may come
// first. The host makes
// fusions of the calls of a compiled step. A plugin runs a fusion in fewer passes over memory than the single calls need.
// The host runs a fusion as the op PLUGRAD_FUSION. The op's attributes are the plugrad_fusion; its views are the fusion's
// outputs, then the fusion's inputs, at most PLUGRAD_FUSION_OPERANDS together.
//
// Result      Every output has the same bits as if the device's own kernels were called one by one on dense operands and
//             numbers, and the head's kernel on the head's own operands; a NaN may be any NaN.
// Space       All instructions share an index space of the fusion's rank. The extents of the space, above 1, come with the
//             operands: along each axis every value has the extent of the space, or 1 if its `axes` say so. The host merges
//             axes where all operands allow it, so a space of dense operands has rank 1. A head's operands do not count.
// Values      are numbered: first the inputs, then the results of the instructions in their order. A value with extent 1
//             along an axis is the same for all places along it.
// Inputs      have the extents of the space: the stride is 0 along the axes of the value and positive along the remaining
//             axes. If the fusion's last axis is among the remaining axes, its stride is 1. A number is an immediate; its
//             value has all axes. The input of a reduction is dense. Numbers, views and shapes may differ from run to run.
// Outputs     have extent 1 along the axes of their values, and are dense in row-major order. An output overlaps an input
//             only if `over` names it: then both have the same elements, and the output is written as if all instructions
//             had read the input before. Outputs do not overlap.
// Head        The first instruction may be a product, a normalisation or attention, if `contents` says so. Its arguments are
//             the fusion's first inputs, in the op's order; their values have no `axes`, their views are as the op demands,
//             and no other instruction reads them. The elements of its first result, in row-major order, are the elements
//             of the space. Each further result is an output that no instruction reads, with a view as the op demands; it
//             has no `axes` either. The other instructions are elementwise and copies.
// Declining   run may return UNSUPPORTED, having written nothing, if it does not run the fusion in these shapes, or not
//             yet. The host then runs the calls one by one.
//
// Getting it  backend->get_extension(PLUGRAD_FUSIONS) returns a plugrad_fusions, or null. The plugin owns it; it is
//             constant and lives as long as the process, and applies to all devices of the plugin.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_FUSIONS "plugrad.fusion/0"

enum {
  PLUGRAD_FUSION = 0x7fff,  // the opcode of a fusion's call
  PLUGRAD_FUSION_OPERANDS = 32,
  PLUGRAD_FUSION_INSTRUCTIONS = 64,
  PLUGRAD_FUSION_NONE = 0xffff,
};

typedef struct plugrad_fusion_value {
  uint8_t dtype;
  uint8_t axes;  // bit d: extent 1 along axis d
} plugrad_fusion_value;

// An instruction reads its arguments and makes its results. An elementwise or copy op computes on the space of its result;
// its arguments have the same space, or extent 1 along more axes. FILL's argument is an immediate. A reduction (SUM, MAX,
// MIN) has one argument; the argument's `axes` are a part of the result's `axes`. An update's arguments begin with the old
// values of its outputs, all of the whole space; the further arguments but the first have all axes.
typedef struct plugrad_fusion_instruction {
  uint32_t opcode;
  uint16_t first;  // of its arguments, in `arguments`
  uint8_t arguments, results;
  uint32_t attributes;  // the byte offset of the op's attributes, from the fusion's first byte; 0: none
} plugrad_fusion_instruction;

typedef struct plugrad_fusion_output {
  uint16_t value;
  uint16_t over;  // the number of the input with the same memory as the output, or PLUGRAD_FUSION_NONE
} plugrad_fusion_output;

// The head of a block of struct_size bytes without pointers. The block contains the arrays at these byte offsets. All of its
// padding is 0, so equal fusions have equal bytes.
typedef struct plugrad_fusion {
  uint32_t struct_size;
  uint16_t rank;  // 1 .. PLUGRAD_MAX_RANK
  uint16_t inputs, outputs, instructions;
  uint16_t values;           // inputs, and results of all instructions
  uint16_t arguments;        // of all instructions
  uint32_t values_at;        // plugrad_fusion_value[values]
  uint32_t instructions_at;  // plugrad_fusion_instruction[instructions]
  uint32_t arguments_at;     // uint16_t[arguments], numbers of values
  uint32_t outputs_at;       // plugrad_fusion_output[outputs]
} plugrad_fusion;

enum {                            // contents
  PLUGRAD_FUSION_REDUCTIONS = 1,  // fusions may reduce; the result of a reduction is only stored
  PLUGRAD_FUSION_ROWS = 2,        // instructions may read the result of reductions over the last axes, but not all; all
                                  // such reductions of a fusion are over the same axes
  PLUGRAD_FUSION_UPDATES = 4,     // fusions may contain updates
  PLUGRAD_FUSION_ALIKE = 8,       // all reductions of a fusion are over the same axes
  PLUGRAD_FUSION_PRODUCTS = 16,   // a head may be MATMUL or MATMUL_ADD
  PLUGRAD_FUSION_NORMS = 32,      // a head may be LAYER_NORM, RMS_NORM, SOFTMAX or LOG_SOFTMAX
  PLUGRAD_FUSION_ATTENTION = 64,  // a head may be ATTENTION
};

typedef struct plugrad_fusions {
  uint32_t struct_size;
  uint32_t contents;     // PLUGRAD_FUSION_REDUCTIONS, ...: the allowed contents of the plugin's fusions
  uint64_t least;        // a fusion of fewer elements takes longer than its calls
  uint64_t longest_row;  // with ROWS: the most elements reduced to a single element by such a reduction
  // Returns the fusion's kernel, or null if the device has no kernel for it: the host then asks for parts of the fusion. The
  // device owns the kernel; the kernel lives as long as the process, and keeps a copy of the parts of the fusion it needs.
  // The host caches the result. The host holds no lock. [any]
  const plugrad_kernel* (*kernel)(plugrad_device* device, const plugrad_fusion* fusion);
  // Returns how many of the first instructions of a fusion with a head the device takes as one fusion. The host asks before
  // it asks for a kernel, and runs the other instructions in another way; below 2, it runs the head alone. Null: the device
  // takes all instructions or none. [any]
  uint32_t (*reach)(plugrad_device* device, const plugrad_fusion* fusion);
  uint64_t least_headed;  // a fusion with a head and with fewer elements takes longer than its calls
} plugrad_fusions;

static_assert(sizeof(plugrad_fusion_value) == 2 && sizeof(plugrad_fusion_instruction) == 12, "layout");
static_assert(sizeof(plugrad_fusion_output) == 4 && sizeof(plugrad_fusion) == 32, "layout");
static_assert(offsetof(plugrad_fusions, least) == 8 && sizeof(plugrad_fusions) == 48, "layout");

#ifdef __cplusplus
}
#endif
