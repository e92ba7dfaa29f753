// The extension "plugrad.forms/0": the forms in which a device likes the operands of compiled steps. C11 and C++20. The
// extension is optional.
//
// Own forms   A step reads most weights in every run and never writes them. A plugin may keep such an input in a form of its
//             own, such as the order of its loops: the host makes the form once, and again after the input has changed. The
//             form is memory of the host's allocation. The host makes forms only for inputs with memory from outside the
//             step.
// Images      With CHANNELS_LAST the host keeps images (n, c, ..) between the calls of a step with their channels last in
//             memory, where all kernels that use them take such strides and neither reader nor writer needs another layout.
//             Elementwise calls on these images then have their axes in the order of memory. Such images have at least 16
//             channels, and convolutions of them at least 16 results in a group, or are depthwise. The plugin's kernels
//             with STRIDED promise not to decline these calls.
//
// Getting it  backend->get_extension(PLUGRAD_FORMS) returns a plugrad_forms, or null. The plugin owns it; it is constant and
//             lives as long as the process, and applies to all devices of the plugin.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist.
// Threads, waiting, ownership, errors: as abi.h states them for every function of a plugin.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_FORMS "plugrad.forms/0"

#define PLUGRAD_CHANNELS_LAST 1u

// A form of an input. The device owns the kernels; they never change.
typedef struct plugrad_form {
  uint32_t struct_size;  // set by the host
  uint32_t reserved;     // 0
  uint64_t bytes;        // of the form, above 0
  // Makes the form. Its op has the opcode and the attributes of the reading op, one output, the form as `bytes` elements of
  // u8, and one input, the operand. It has no workspace.
  const plugrad_kernel* maker;
  // Computes the reading op with the form: the operand's view then has the form's buffer and offset, and the shape, strides
  // and dtype of the operand. The results have the bits of the results of the kernel that reads the operand itself.
  const plugrad_kernel* reader;
} plugrad_form;

typedef struct plugrad_forms {
  uint32_t struct_size;
  uint32_t flags;  // PLUGRAD_CHANNELS_LAST
  // Describes the form of input `input` (0: the first) for this op, and returns 1; or returns 0 if no form pays. `kernel` is
  // the kernel found by resolve for the op. The result depends on the kernel, and on the op's attributes and the shapes,
  // strides and dtypes of its views: buffers, offsets and workspace mean nothing. Null: there are no forms. [any]
  uint32_t (*find)(plugrad_device* device, const plugrad_kernel* kernel, const plugrad_op* op, uint32_t input,
                   plugrad_form* form);
} plugrad_forms;

static_assert(sizeof(plugrad_form) == 32 && offsetof(plugrad_form, maker) == 16, "layout");
static_assert(sizeof(plugrad_forms) == 16 && offsetof(plugrad_forms, find) == 8, "layout");

#ifdef __cplusplus
}
#endif
