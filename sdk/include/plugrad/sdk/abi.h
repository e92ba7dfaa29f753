// The contract between a tensor core ("the host") and a backend plugin: C11 and C++20, 64-bit little-endian machines.
// A plugin is a shared object that exports one symbol, plugrad_backend_v0, and nothing else.
//
// Threads     [any]            from any thread, at any time.
//             [device-serial]  never two calls at once for one device; never while the host holds a stream's lock.
//             [stream-serial]  never two calls at once for one stream. Where the stream is null: [any].
//             Any thread may call: a plugin selects its device itself and keeps no state per calling thread.
// Waiting     A call that may wait for the device says so; all others wait at most for room in a stream's queue. Whoever
//             waits, waits only for work submitted before, and holds no lock that another stream's submission needs.
// Ownership   A plugin keeps no pointer that the host passed it after the call returns, except plugrad_host.
//             A plugin's own strings, tables, kernels, devices and streams live as long as the process, unless said
//             otherwise.
// Growth      Every struct but plugrad_view begins with struct_size and grows at its end only; a field beyond struct_size
//             does not exist. Each growth adds one to PLUGRAD_REVISION and one hash to plugrad_layouts. Two sides agree
//             when the hashes of the smaller of their revisions are equal; that revision's fields need no check afterwards,
//             and 0 in a field that was appended means the behaviour before it existed. Arrays of structs carry a stride.
// Open values Opcodes, dtypes, flags and kinds are integers, not enums: what the receiver does not know is answered with
//             PLUGRAD_UNSUPPORTED, and an unknown status counts as PLUGRAD_INTERNAL.
// Errors      A function that answers a status other than PLUGRAD_OK has first called host->report on the calling thread.
//             A plugin never aborts, prints, throws across a call, or installs a signal handler.
// Lifetime    The file is never unloaded, and the process may end while its threads run: no destructor touches the device.
//             State hangs on the opened device, never on the file: two cores may live in one process.
#pragma once
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_EXPORT __attribute__((visibility("default")))

enum {
  PLUGRAD_ABI_MAJOR = 0,
  PLUGRAD_REVISION = 0,
  PLUGRAD_MAX_RANK = 8,
  PLUGRAD_MAX_OPERANDS = 16,
  PLUGRAD_PRIVATE_OPS = 0x8000,  // opcodes from here on are a plugin's own; an extension of the plugin names them
};

// One hash per revision, over names, offsets and sizes of all fields up to it, as backend.hpp computes it (layout_hash).
#define PLUGRAD_LAYOUT_0 0xc5ce050fab36e4b7ull
static const uint64_t plugrad_layouts[PLUGRAD_REVISION + 1] = {PLUGRAD_LAYOUT_0};

typedef int32_t plugrad_status;
enum {
  PLUGRAD_OK = 0,
  PLUGRAD_INVALID = 1,        // the caller broke the contract
  PLUGRAD_UNSUPPORTED = 2,    // declined before any effect; the host takes another way
  PLUGRAD_OUT_OF_MEMORY = 3,  // no effect; the host trims its cache and asks once more
  PLUGRAD_INDEX_ERROR = 4,    // an index was out of range: outputs are unspecified, nothing else was touched
  PLUGRAD_DEVICE_ERROR = 5,   // from run, copy, wait: something earlier on this stream failed, call sync; this had no effect
  PLUGRAD_DEVICE_LOST = 6,    // the device is gone for ever; free still works
  PLUGRAD_INTERNAL = 7,       // a bug of the plugin, an exception it did not expect
};

enum {  // dtypes
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) PLUGRAD_##name = id,
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
};

// Layout bits of a view. The class of an op is the OR over its views. A kernel states the bits it copes with and serves
// every subset of them; for the rest the host makes dense copies. FILL, COPY and CAST serve every class.
enum {
  PLUGRAD_STRIDED = 1,     // not row-major without gaps
  PLUGRAD_BROADCAST = 2,   // some stride is 0 where the extent is above 1 (inputs only); implies STRIDED
  PLUGRAD_NEGATIVE = 4,    // some stride is negative where the extent is above 1; implies STRIDED
  PLUGRAD_UNALIGNED = 8,   // offset is not a multiple of the device's alignment
  PLUGRAD_WIDE_INDEX = 16, // an element lies 2^31 elements or more from the first, or count is above 2^31 - 1
  PLUGRAD_IMMEDIATE = 32,  // no memory: the value itself
  PLUGRAD_ALL_LAYOUTS = 63,
};

enum {  // what the host wants of a kernel, in the question it asks
  PLUGRAD_ACCUMULATE = 1,     // add to what the (only) output holds, instead of overwriting it
  PLUGRAD_DETERMINISTIC = 2,  // the same bits on each run
  PLUGRAD_TF32 = 4,           // f32 matmul may round its inputs to 10 bits of mantissa
};

enum {  // capabilities: what is true of a device and no function says
  PLUGRAD_HOST_MEM = 1,  // a buffer handle is an address the host may read and write (after sync)
  PLUGRAD_ASYNC = 2,     // it has streams; without it every call is complete on return
};

// What the host may use device 0 of a plugin for where the program does not name it. It counts for devices with HOST_MEM and
// without ASYNC only; among several plugins the larger number wins, then the one that was found first.
enum {
  PLUGRAD_ONLY_BY_NAME = 0,
  PLUGRAD_AS_FALLBACK = 1,  // ops that another device lacks, if the program allows it
  PLUGRAD_AS_DEFAULT = 2,   // these, and tensors for which the program names no device
};

enum { PLUGRAD_HOST = 0, PLUGRAD_PINNED = 1, PLUGRAD_DEVICE = 2 };       // kinds of a place
enum { PLUGRAD_COMPUTE_STREAM = 0, PLUGRAD_COPY_STREAM = 1 };            // roles of a stream: a hint
enum { PLUGRAD_DEBUG = 0, PLUGRAD_INFO = 1, PLUGRAD_WARNING = 2, PLUGRAD_ERROR = 3 };  // levels of log

enum {  // opcodes
#define PLUGRAD_OP(name, id, shape, tier, operands, ulps, gradient, definition) PLUGRAD_OP_##name = id,
#include <plugrad/sdk/ops.def>
#undef PLUGRAD_OP
};

typedef struct plugrad_device plugrad_device;  // the plugin's; made by open, never closed
typedef struct plugrad_stream plugrad_stream;  // the plugin's; made by stream_create, never destroyed; null without ASYNC
typedef struct plugrad_buffer plugrad_buffer;  // the plugin's; with HOST_MEM the address of its first byte

// Where the elements of an operand are. The host's tensors hold their view in exactly this form and an op points to it.
// Frozen for the major. The buffer stays allocated until every op submitted with it is out of flight on its stream.
// An immediate operand (a number) has buffer null, rank 0, count 1, layout IMMEDIATE, and its value in the 8 bytes of
// offset: a double where dtype is floating, an int64_t otherwise; the kernel rounds it to dtype.
typedef struct plugrad_view {
  plugrad_buffer* buffer;
  uint64_t offset;      // bytes from the start of the buffer to element (0, 0, ...); a multiple of the element's size
  int64_t count;        // elements: the product of shape[0 .. rank); never 0 in a call. Derived
  uint8_t dtype;        // PLUGRAD_F32, ...
  uint8_t rank;         // 0 .. PLUGRAD_MAX_RANK; what lies beyond rank in the arrays is unspecified
  uint16_t layout;      // the layout bits that hold. Derived
  uint8_t reserved[4];  // 0
  int64_t shape[PLUGRAD_MAX_RANK];
  int64_t strides[PLUGRAD_MAX_RANK];  // in elements; 0 in inputs only; unspecified where the extent is 1
} plugrad_view;

// One call of a kernel. Owned by the host, valid during the call, with all it points to.
// An output overlaps no other operand, unless ops.def lets it be one of the inputs: then their views are equal.
typedef struct plugrad_op {
  uint32_t struct_size;
  uint32_t opcode;
  uint64_t number;                   // of this op on its stream; 0 where the stream is null
  const plugrad_view* const* views;  // the outputs, then the inputs
  const void* attributes;            // this opcode's struct below, or null where it has none
  uint16_t outputs, inputs;
  uint32_t flags;                    // the flags the kernel was resolved with
  plugrad_buffer* workspace;         // as many bytes as kernel->workspace asked for, or null; its contents are unspecified
  uint64_t workspace_offset;         // bytes; a multiple of the device's alignment
  uint64_t workspace_bytes;
} plugrad_op;

// Attributes: flat, without pointers, so that a queue copies struct_size bytes.
typedef struct plugrad_axis {  // GATHER, SCATTER_ADD, LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD
  uint32_t struct_size;
  int32_t axis;  // 0 .. rank - 1
} plugrad_axis;
typedef struct plugrad_sgd {  // SGD_STEP
  uint32_t struct_size;
  uint32_t nesterov;  // 0 or 1
  double momentum, weight_decay;
} plugrad_sgd;
typedef struct plugrad_adam {  // ADAM_STEP
  uint32_t struct_size;
  uint32_t decoupled;  // 1: weight decay as AdamW has it
  double beta1, beta2, epsilon, weight_decay;
} plugrad_adam;

// A kernel of one device, with whatever the plugin keeps behind it. Owned by the device, constant, valid as long as it.
typedef struct plugrad_kernel {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  // Submits op; with ASYNC it may finish later. Views and attributes are consumed on return. Never allocates, and never
  // waits for the device, save for room in the stream's queue, which holds at least 256 submissions. UNSUPPORTED and
  // OUT_OF_MEMORY are allowed for what the signature could not say (a size): nothing is written then. [stream-serial]
  plugrad_status (*run)(const struct plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op);
  // How many bytes of device memory run will want for op; null: none. op's number and workspace are not set yet. [any]
  uint64_t (*workspace)(const struct plugrad_kernel* kernel, const plugrad_op* op);
} plugrad_kernel;

// The question that resolve answers. Owned by the host, valid during the call.
typedef struct plugrad_signature {
  uint32_t struct_size;
  uint32_t opcode;
  uint32_t flags;                         // PLUGRAD_ACCUMULATE, ...: all of them are wanted
  uint16_t layout;                        // the class: the OR of the views' layout bits
  uint8_t outputs, inputs;
  uint8_t dtypes[PLUGRAD_MAX_OPERANDS];   // of the outputs, then of the inputs; 0 beyond
  const void* attributes;                 // for opcodes that ops.def marks as compiled (none yet), else null
} plugrad_signature;

// One side of a copy. Owned by the host, valid during the call.
typedef struct plugrad_place {
  uint32_t struct_size;
  uint32_t kind;           // HOST (plain memory), PINNED, DEVICE
  plugrad_device* device;  // whose buffer it is; PINNED: who pinned it; HOST: null, except where the stream is null:
                           // there the place that is no DEVICE names the device of the other
  plugrad_buffer* buffer;  // HOST, PINNED: the address
  uint64_t offset;         // bytes
} plugrad_place;

typedef struct plugrad_copy {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  uint64_t number;    // as in plugrad_op
  uint64_t bytes;     // above 0
  plugrad_place to, from;
} plugrad_copy;

// What sync fills where it answers DEVICE_ERROR: the op that failed first is one of first .. last.
typedef struct plugrad_failure {
  uint32_t struct_size;   // set by the host
  plugrad_status status;  // of the op itself: DEVICE_ERROR, INDEX_ERROR
  uint64_t first, last;   // numbers on the stream; equal where the device knows the op
} plugrad_failure;

typedef struct plugrad_option {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  const char* key;
  const char* value;
} plugrad_option;

// What the user wants of a device: "threads", "memory" (bytes), "flush_to_zero" (0, 1), and keys of the plugin's own.
typedef struct plugrad_options {
  uint32_t struct_size;
  uint32_t count;
  uint64_t stride;  // bytes from one item to the next
  const plugrad_option* items;
} plugrad_options;

// What a device is. The host zeroes it and sets struct_size; open fills what it covers.
typedef struct plugrad_device_info {
  uint32_t struct_size;
  uint32_t capabilities;
  uint64_t alignment;     // bytes, a power of two: of every buffer, and of the offsets at which the host cuts it
  uint64_t memory;        // bytes installed; 0: unknown
  int32_t dlpack_type;    // DLDeviceType: 1 CPU, 2 CUDA, ...; 0: none
  int32_t dlpack_index;
  int32_t numa_node;      // -1: unknown
  uint32_t reserved;      // 0
  char name[64];          // what people call it: "NVIDIA H200"; UTF-8, ends in 0
  char identity[64];      // UUID or PCI address; may be empty
} plugrad_device_info;

// What the host offers. Lives as long as the process. The fields up to and with report never change, in any major.
typedef struct plugrad_host {
  uint32_t struct_size;
  uint32_t revision;
  const uint64_t* layouts;  // revision + 1 hashes
  // Takes note of why the running call answers what it answers; copies message (UTF-8). [any]
  void (*report)(const struct plugrad_host* host, plugrad_status status, const char* message);
  // Writes a line to the host's log; copies message. [any]
  void (*log)(const struct plugrad_host* host, uint32_t level, const char* message);
  // The extension of that name ("name/revision"), or null. [any]
  const void* (*get_extension)(const struct plugrad_host* host, const char* name);
} plugrad_host;

// The plugin. Static, constant; no work happens before count or open. The fields up to and with layouts never change.
typedef struct plugrad_backend {
  uint32_t struct_size;
  uint32_t revision;
  const uint64_t* layouts;  // revision + 1 hashes
  const char* name;         // "cpu": [a-z][a-z0-9_-]*; the device is "cpu:0"
  const char* version;      // the plugin's own, for people

  // How many devices there are. No hardware or no driver is no error: 0, PLUGRAD_OK, and the reason by host->report with
  // PLUGRAD_OK. May load further libraries and start a driver: the host asks once a process, and only a plugin whose device
  // the program names or that it lists. [any]
  plugrad_status (*count)(const plugrad_host* host, uint32_t* devices);
  // Opens device number index, for this host; each call makes another handle. An unknown option is INVALID, with a message
  // that names the known ones. May load further libraries and wait. [any]
  plugrad_status (*open)(const plugrad_host* host, uint32_t index, const plugrad_options* options, plugrad_device** device,
                         plugrad_device_info* info);
  // The kernel for a signature, or null. The answer never changes, so the host keeps it. May take seconds, load further
  // libraries and wait. Reports nothing. [any], with no lock held
  const plugrad_kernel* (*resolve)(plugrad_device* device, const plugrad_signature* signature);
  // The extension of that name ("name/revision"), or null. May be null. [any]
  const void* (*get_extension)(const char* name);

  // Memory. alloc and free: both, or with HOST_MEM neither (the host then allocates). Without HOST_MEM copy as well.
  // A buffer of bytes (above 0), aligned to info.alignment; its contents are unspecified. May wait. [device-serial]
  plugrad_status (*alloc)(plugrad_device* device, uint64_t bytes, plugrad_buffer** buffer);
  // Nothing in flight uses the buffer, or the device is lost. May wait; fails silently. [device-serial]
  void (*free)(plugrad_device* device, plugrad_buffer* buffer);
  // Bytes of device memory free now and installed; may be null. [any]
  plugrad_status (*memory_info)(plugrad_device* device, uint64_t* free_bytes, uint64_t* total_bytes);
  // Host memory that the device copies to and from by itself (PINNED). Both may be null. May wait. [device-serial]
  plugrad_status (*pin)(plugrad_device* device, uint64_t bytes, void** address);
  void (*unpin)(plugrad_device* device, void* address);

  // Submits a copy, in stream order. HOST in `to`: waits until the bytes are there; a failure of something earlier answers
  // DEVICE_ERROR, and the bytes mean nothing. HOST in `from`: the source is the caller's again on return; waits at most for
  // staging memory of the same stream. DEVICE to DEVICE within one plugin, across its devices too: or UNSUPPORTED. Else as
  // kernel->run. With HOST_MEM and without ASYNC it may be null (the host copies). [stream-serial]
  plugrad_status (*copy)(plugrad_stream* stream, const plugrad_copy* copy);

  // Streams: all four with ASYNC, none without. Ops and copies of a stream happen in the order of submission. The host
  // numbers them 1, 2, ...; a number that was refused (any status but OK) comes again, with the next call.
  // May wait. [device-serial]
  plugrad_status (*stream_create)(plugrad_device* device, uint32_t role, plugrad_stream** stream);
  // *number: nothing up to it is in flight any longer: done, failed or dropped. Never falls, and reaches the last number
  // submitted before the call if called again and again. OK: and all up to it went well. DEVICE_ERROR: a failure waits for
  // sync. DEVICE_LOST: *number is the last one submitted. A failure found here is not reported. [any]
  plugrad_status (*completed)(plugrad_stream* stream, uint64_t* number);
  // What stream runs next starts after other's op *number has ended, well or not; *number is raised to what the wait
  // covers. Once something behind the wait is done, completed(other) answers at least *number. A number that other has not
  // been given yet is INVALID. Their devices may differ, not the plugin. [stream-serial] for stream, [any] for other
  plugrad_status (*wait)(plugrad_stream* stream, plugrad_stream* other, uint64_t* number);
  // Waits for all submitted. DEVICE_ERROR: fills *failure and clears it; the stream takes work again. [stream-serial]
  plugrad_status (*sync)(plugrad_stream* stream, plugrad_failure* failure);

  uint32_t unnamed_use;  // PLUGRAD_ONLY_BY_NAME, ...
  uint32_t reserved;     // 0
} plugrad_backend;

static_assert(sizeof(void*) == 8, "plugrad needs 64-bit addresses");
static_assert(sizeof(plugrad_view) == 160, "the view is frozen");
static_assert(sizeof(plugrad_op) == 64 && sizeof(plugrad_kernel) == 24 && sizeof(plugrad_signature) == 40, "layout");
static_assert(sizeof(plugrad_axis) == 8 && sizeof(plugrad_sgd) == 24 && sizeof(plugrad_adam) == 40, "layout");
static_assert(sizeof(plugrad_place) == 32 && sizeof(plugrad_copy) == 88 && sizeof(plugrad_failure) == 24, "layout");
static_assert(sizeof(plugrad_option) == 24 && sizeof(plugrad_options) == 24, "layout");
static_assert(sizeof(plugrad_device_info) == 168 && sizeof(plugrad_host) == 40 && sizeof(plugrad_backend) == 152, "layout");

// The one exported symbol. Answers the same static table on every call; never null. host may not be kept from here. [any]
typedef const plugrad_backend* (*plugrad_backend_entry)(const plugrad_host* host);
PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host);

#ifdef __cplusplus
}
#endif
