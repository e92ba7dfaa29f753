// The extension "plugrad.sequence/0" of a plugin whose devices have streams: a list of calls that is submitted many times,
// as a CUDA graph or a recorded command buffer. C11 and C++20. The extension is optional.
//
// The host makes a sequence of the calls of a compiled step, and runs it once for each step.
//
// Calls       are those of kernel->run on the sequence's stream, in their order. What they point to stays where it is until
//             drop. Between two runs the host may change, in place, the buffers and offsets of views, the values of
//             immediates, numbers in attributes, and the buffer and offset of workspaces; nothing else, and no view's
//             layout.
// Changes     Each run says which calls have such a change since the last run that was accepted, or since make: bit i % 64
//             of changed[i / 64] is set for call i; further bits have no meaning. The plugin may rely on the others being as
//             they were. Memory that was freed and came again under the same handle and offset is no change.
// Numbers     A run takes the numbers first .. first + count - 1 of the stream, one for each call; op.number has no meaning.
//             The device behaves as if the calls had been submitted one by one: failures name their call's number, and
//             completed may count the calls one by one or all at once.
// Refusing    After any status but OK, run has submitted nothing and taken no number. UNSUPPORTED and OUT_OF_MEMORY ask the
//             host to submit the calls one by one, this time; UNSUPPORTED from make, from then on.
// Waiting     run may wait until an earlier run has ended.
//
// Getting it  backend->get_extension(PLUGRAD_SEQUENCES) returns a plugrad_sequences, or null. The plugin owns it; it is
//             constant and lives as long as the process, and applies to all devices and streams of the plugin.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist.
// Threads, waiting, ownership, errors: as abi.h states them for every function of a plugin.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_SEQUENCES "plugrad.sequence/0"

typedef struct plugrad_sequence plugrad_sequence;  // the plugin's

typedef struct plugrad_sequence_call {
  const plugrad_kernel* kernel;
  const plugrad_op* op;
} plugrad_sequence_call;

typedef struct plugrad_sequences {
  uint32_t struct_size;
  uint32_t least;  // fewer calls than this do not pay
  // Makes a sequence on a stream. Submits nothing. The array is read only during this call; what it points to must stay
  // until drop. [stream-serial]
  plugrad_status (*make)(plugrad_stream* stream, const plugrad_sequence_call* calls, uint32_t count,
                         plugrad_sequence** made);
  // Submits all calls. [stream-serial]
  plugrad_status (*run)(plugrad_sequence* sequence, uint64_t first, const uint64_t* changed);
  // Ends the sequence: the plugin no longer reads what it was made of. Runs that were accepted still take place; drop may
  // wait for them. No run is called at the same time. [any]
  void (*drop)(plugrad_sequence* sequence);
} plugrad_sequences;

static_assert(sizeof(plugrad_sequence_call) == 16, "layout");
static_assert(offsetof(plugrad_sequences, make) == 8 && offsetof(plugrad_sequences, run) == 16, "layout");
static_assert(offsetof(plugrad_sequences, drop) == 24 && sizeof(plugrad_sequences) == 32, "layout");

#ifdef __cplusplus
}
#endif
