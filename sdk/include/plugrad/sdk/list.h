// The extension "plugrad.list/0" of a plugin for devices with streams: lists of calls. A list is a single submission, such
// as a CUDA graph or a recorded command buffer. C11 and C++20. The extension is optional.
//
// The host makes a list of the calls of a compiled step, and runs the list once for each step. For a batch of calls of one
// kernel, such as the updates of all parameters, the host makes a list, runs it once, and drops it.
//
// Calls       are calls of kernel->run on the list's stream, in their order. The objects they point to stay at their
//             addresses until drop. Between two runs the host may change, in place, the buffers and offsets of views, the
//             values of immediates, numbers in attributes, and the buffer and offset of workspaces; nothing else, and no
//             view's layout.
// Flags       INDEPENDENT: no call writes memory read or written by another call of the list. The device may run the calls
//             in any order, or at once.
//             ONCE: the host runs the list at most once, with null for `changed`. Work that pays only over many runs, such
//             as making a graph, is wasted on this list.
// Batches     have both flags, at least 2 calls, no workspace, and a single kernel; batches() returned 1 for the kernel.
// Changes     Each run marks the calls with such a change since the last accepted run, or since make: bit i % 64 of
//             changed[i / 64] is set for call i; further bits have no meaning. The plugin may rely on all remaining calls
//             being unchanged. Memory freed and allocated again with the same handle and offset is not a change.
// Numbers     A run takes the numbers first .. first + count - 1 of the stream, one for each call; op.number has no meaning.
//             The device behaves as if the calls had been submitted one by one: failures name their call's number, and
//             completed may count the calls one by one or all at once.
// Refusing    After any status but OK, make and run have submitted nothing and taken no number. UNSUPPORTED and
//             OUT_OF_MEMORY ask the host to submit the calls one by one, this time; UNSUPPORTED from make of a list without
//             ONCE, from then on. A plugin may offer only batches, or only lists without ONCE.
// Waiting     run may wait until an earlier run has ended.
//
// Getting it  backend->get_extension(PLUGRAD_LISTS) returns a plugrad_lists, or null. The plugin owns it; it is constant and
//             lives as long as the process, and applies to all devices and streams of the plugin.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist.
// Threads, waiting, ownership, errors: as abi.h states them for every function of a plugin.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_LISTS "plugrad.list/0"

#define PLUGRAD_LIST_ONCE 1u
#define PLUGRAD_LIST_INDEPENDENT 2u

typedef struct plugrad_list plugrad_list;  // the plugin owns it

typedef struct plugrad_list_call {
  const plugrad_kernel* kernel;
  const plugrad_op* op;
} plugrad_list_call;

typedef struct plugrad_lists {
  uint32_t struct_size;
  uint32_t least;  // a list of fewer calls does not pay, except for a batch
  // Returns 1 if the device gains from batches of this kernel, else 0. The result never changes. Null: the device gains from
  // no kernel's batches. [any]
  uint32_t (*batches)(plugrad_device* device, const plugrad_kernel* kernel);
  // Makes a list on a stream. Submits nothing. The array is read only during this call; the objects it points to must stay
  // until drop. flags: PLUGRAD_LIST_*; unknown flags are 0. [stream-serial]
  plugrad_status (*make)(plugrad_stream* stream, const plugrad_list_call* calls, uint32_t count, uint32_t flags,
                         plugrad_list** made);
  // Submits all calls. [stream-serial]
  plugrad_status (*run)(plugrad_list* list, uint64_t first, const uint64_t* changed);
  // Ends the list: the plugin no longer reads the list's calls and the objects they point to. Accepted runs still take
  // place; drop may wait for them. No run is called at the same time. [any]
  void (*drop)(plugrad_list* list);
} plugrad_lists;

static_assert(sizeof(plugrad_list_call) == 16, "layout");
static_assert(offsetof(plugrad_lists, batches) == 8 && offsetof(plugrad_lists, make) == 16, "layout");
static_assert(offsetof(plugrad_lists, run) == 24 && offsetof(plugrad_lists, drop) == 32, "layout");
static_assert(sizeof(plugrad_lists) == 40, "layout");

#ifdef __cplusplus
}
#endif
