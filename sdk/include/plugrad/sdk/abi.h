// The contract between a tensor core ("the host") and a backend plugin: C11 and C++20, 64-bit little-endian machines.
// A plugin is a shared object. It exports the symbol plugrad_backend_v0, and nothing else.
//
// Threads     [any]            from any thread, at any time.
//             [device-serial]  one call at a time for each device; the host holds no stream's lock.
//             [stream-serial]  one call at a time for each stream. Where the stream is null: [any].
//             Successive calls may come from different threads: each call selects its device, and no state is per thread.
// Waiting     A function may wait for the device only if its comment says so; else it waits at most for room in a stream's
//             queue. A function waits only for work submitted earlier, and holds no lock needed by a submission to another
//             stream.
// Ownership   After a call returns, the plugin keeps no pointer passed by the host, except plugrad_host.
//             The strings, tables, kernels, devices and streams of a plugin live as long as the process, unless stated
//             otherwise.
// Growth      Every struct but plugrad_view begins with struct_size and grows at its end only; a field beyond struct_size
//             does not exist. Each growth adds one to PLUGRAD_REVISION and one hash to plugrad_layouts. Two sides agree
//             when their hashes of the smaller of the two revisions are equal. The fields of that revision then need no
//             check, and 0 in an appended field selects the behaviour before it existed. Arrays of structs carry a stride.
// Open values Opcodes, dtypes, flags and kinds are integers, not enums. A receiver returns PLUGRAD_UNSUPPORTED for an
//             unknown value; an unknown status counts as PLUGRAD_INTERNAL.
// Errors      Before a function returns any status but PLUGRAD_OK, it calls host->report on the calling thread.
//             A plugin never aborts, prints, throws across a call, or installs a signal handler.
// Lifetime    The file is never unloaded, and the process may end while its threads run: no destructor touches the device.
//             State belongs to the opened device, never to the file: one process may contain two cores.
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
  PLUGRAD_PRIVATE_OPS = 0x8000,  // opcodes from here on belong to a plugin; an extension of the plugin names them
};

// One hash per revision, over names, offsets and sizes of all fields up to it; layout_hash in layout.hpp computes it.
#define PLUGRAD_LAYOUT_0 0x185aa4f6f13e2c92ull
static const uint64_t plugrad_layouts[PLUGRAD_REVISION + 1] = {PLUGRAD_LAYOUT_0};

typedef int32_t plugrad_status;
enum {
  PLUGRAD_OK = 0,
  PLUGRAD_INVALID = 1,        // the caller broke the contract
  PLUGRAD_UNSUPPORTED = 2,    // declined before any effect; the host computes the op in another way
  PLUGRAD_OUT_OF_MEMORY = 3,  // no effect; the host trims its cache and retries once
  PLUGRAD_INDEX_ERROR = 4,    // an index is out of range: outputs are unspecified, no other memory was written
  PLUGRAD_DEVICE_ERROR = 5,   // from run, copy, wait: earlier work on this stream failed, call sync; this call had no effect
  PLUGRAD_DEVICE_LOST = 6,    // the device is lost permanently; free still works
  PLUGRAD_INTERNAL = 7,       // a bug in the plugin, such as an unexpected exception
};

enum {  // dtypes
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) PLUGRAD_##name = id,
#define PLUGRAD_COMPLEX_DTYPE(name, id, enumerator, label, part, dlpack) PLUGRAD_##name = id,
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
};

// Layout bits of a view. The class of an op is the OR over its views. A kernel declares its supported bits and must accept
// every subset of them; for other classes the host makes dense copies. FILL, COPY and CAST accept every class.
enum {
  PLUGRAD_STRIDED = 1,      // not dense in row-major order
  PLUGRAD_BROADCAST = 2,    // some stride is 0 where the extent is above 1 (inputs only); implies STRIDED
  PLUGRAD_NEGATIVE = 4,     // some stride is negative where the extent is above 1; implies STRIDED
  PLUGRAD_UNALIGNED = 8,    // offset is not a multiple of the device's alignment
  PLUGRAD_WIDE_INDEX = 16,  // an element lies 2^31 elements or more from the first, or count is above 2^31 - 1
  PLUGRAD_IMMEDIATE = 32,   // no memory: the view holds the value itself
  PLUGRAD_ALL_LAYOUTS = 63,
};

enum {                        // flags: the host's requirements on a kernel, part of the signature
  PLUGRAD_ACCUMULATE = 1,     // add to the contents of the (only) output instead of overwriting it
  PLUGRAD_DETERMINISTIC = 2,  // produce the same bits on each run
  PLUGRAD_TF32 = 4,           // f32 matmul may round its inputs to 10 bits of mantissa
};

enum {                   // capabilities of a device
  PLUGRAD_HOST_MEM = 1,  // a buffer handle is an address that the host may read and write (after sync)
  PLUGRAD_ASYNC = 2,     // the device has streams; without this bit the work of a call is complete when the call returns
  PLUGRAD_FLUSHES_DENORMALS = 4,  // arithmetic may take denormal numbers as 0 (ops.md); without this bit it never does
};

// How the host may use device 0 of a plugin if the program does not name the plugin. This applies only to devices with
// HOST_MEM and without ASYNC. Among several plugins the largest value wins, then the plugin found first.
enum {
  PLUGRAD_ONLY_BY_NAME = 0,
  PLUGRAD_AS_FALLBACK = 1,  // for ops missing on another device, if the program allows it
  PLUGRAD_AS_DEFAULT = 2,   // as AS_FALLBACK, and for tensors if the program names no device for them
};

enum { PLUGRAD_HOST = 0, PLUGRAD_PINNED = 1, PLUGRAD_DEVICE = 2 };                     // kinds of a place
enum { PLUGRAD_COMPUTE_STREAM = 0, PLUGRAD_COPY_STREAM = 1 };                          // roles of a stream: a hint
enum { PLUGRAD_DEBUG = 0, PLUGRAD_INFO = 1, PLUGRAD_WARNING = 2, PLUGRAD_ERROR = 3 };  // levels of log

enum {  // opcodes
#define PLUGRAD_OP(name, id, shape, tier, operands, ulps, gradient, definition) PLUGRAD_OP_##name = id,
#include <plugrad/sdk/ops.def>
#undef PLUGRAD_OP
};

typedef struct plugrad_device plugrad_device;  // the plugin owns it; open creates it, nothing closes it
typedef struct plugrad_stream plugrad_stream;  // the plugin owns it and never destroys it; null without ASYNC
typedef struct plugrad_buffer plugrad_buffer;  // the plugin owns it; with HOST_MEM the address of its first byte

// Describes where the elements of an operand are. The host's tensors store their views in this form; ops point to the views.
// Frozen for the major version. The buffer stays allocated until no op submitted with it is in flight on its stream.
// An immediate operand (a number) has buffer null, rank 0, count 1, layout IMMEDIATE, and its value in the 8 bytes of
// offset: a double where dtype is floating, an int64_t otherwise; the kernel rounds it to dtype.
typedef struct plugrad_view {
  plugrad_buffer* buffer;
  uint64_t offset;      // bytes from the start of the buffer to element (0, 0, ...); a multiple of the element's size
  int64_t count;        // elements: the product of shape[0 .. rank); never 0 in a call. Derived
  uint8_t dtype;        // PLUGRAD_F32, ...
  uint8_t rank;         // 0 .. PLUGRAD_MAX_RANK; array entries beyond rank are unspecified
  uint16_t layout;      // the view's layout bits. Derived
  uint8_t reserved[4];  // 0
  int64_t shape[PLUGRAD_MAX_RANK];
  int64_t strides[PLUGRAD_MAX_RANK];  // in elements; 0 is allowed in inputs only; unspecified where the extent is 1
} plugrad_view;

// One call of a kernel. The host owns it; it and everything it points to are valid during the call.
// An output overlaps no other operand, unless ops.def allows it to be one of the inputs: then their views are equal.
typedef struct plugrad_op {
  uint32_t struct_size;
  uint32_t opcode;
  uint64_t number;                   // this op's number on its stream; 0 where the stream is null
  const plugrad_view* const* views;  // the outputs, then the inputs
  const void* attributes;            // this opcode's struct below, or null where it has none
  uint16_t outputs, inputs;
  uint32_t flags;             // the flags the kernel was resolved with
  plugrad_buffer* workspace;  // device memory, as much as kernel->workspace asked for, or null; not initialized
  uint64_t workspace_offset;  // bytes; a multiple of the device's alignment
  uint64_t workspace_bytes;
} plugrad_op;

// Attributes are flat, without pointers, so that a queue can copy struct_size bytes.
typedef struct plugrad_axis {  // GATHER, SCATTER_ADD, SCATTER_SUM, LOG_SOFTMAX, SOFTMAX and their backward
  uint32_t struct_size;
  int32_t axis;  // 0 .. rank - 1
} plugrad_axis;
typedef struct plugrad_sort {  // ARGSORT, TOPK
  uint32_t struct_size;
  int32_t axis;         // 0 .. rank - 1
  uint32_t descending;  // 0 or 1
} plugrad_sort;
typedef struct plugrad_convolution {  // CONVOLUTION, CONVOLUTION_BIAS, CONVOLUTION_INPUT_GRAD, CONVOLUTION_WEIGHT_GRAD
  uint32_t struct_size;
  uint32_t reserved;  // 0
  int64_t groups;
  int64_t stride[3], padding[3], dilation[3];  // one number for each spatial axis; entries beyond are unspecified
} plugrad_convolution;
typedef struct plugrad_pool {  // MAX_POOL
  uint32_t struct_size;
  uint32_t reserved;                                    // 0
  int64_t size[3], stride[3], padding[3], dilation[3];  // one number for each spatial axis; entries beyond are unspecified
} plugrad_pool;
typedef struct plugrad_norm {  // LAYER_NORM, RMS_NORM, BATCH_NORM, BATCH_NORM_BACKWARD
  uint32_t struct_size;
  uint32_t reserved;  // 0
  double epsilon;     // added to the variance, or to the mean of squares
} plugrad_norm;
typedef struct plugrad_scan {  // CUMSUM
  uint32_t struct_size;
  int32_t axis;      // 0 .. rank - 1
  uint32_t reverse;  // 0 or 1
} plugrad_scan;
enum {  // kinds of FFT
  PLUGRAD_FFT_FORWARD = 0,
  PLUGRAD_FFT_BACKWARD = 1,
  PLUGRAD_FFT_REAL = 2,          // forward, from real numbers to half of the result
  PLUGRAD_FFT_INVERSE_REAL = 3,  // backward, from such a half to real numbers
};
typedef struct plugrad_fft {  // FFT
  uint32_t struct_size;
  int32_t axis;       // of the transforms
  uint32_t kind;      // PLUGRAD_FFT_FORWARD, ...
  uint32_t reserved;  // 0
  double scale;       // of the results
} plugrad_fft;
typedef struct plugrad_attention {  // ATTENTION, ATTENTION_BACKWARD
  uint32_t struct_size;
  uint32_t causal;  // 0 or 1
  double scale;
} plugrad_attention;
typedef struct plugrad_sgd {  // SGD_STEP
  uint32_t struct_size;
  uint32_t nesterov;              // 0 or 1
  double momentum, weight_decay;  // momentum > 0
} plugrad_sgd;
typedef struct plugrad_adam {  // ADAM_STEP
  uint32_t struct_size;
  uint32_t decoupled;  // 1: the decoupled weight decay of AdamW
  double beta1, beta2, epsilon, weight_decay;
} plugrad_adam;

// A kernel of one device; the plugin may store its own data after these fields. The device owns it; it never changes.
typedef struct plugrad_kernel {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  // Submits op; with ASYNC the op may finish after the call. Reads views and attributes before it returns. Never allocates,
  // and never waits for the device, except for room in the stream's queue, which holds at least 256 submissions. May return
  // UNSUPPORTED or OUT_OF_MEMORY, having written nothing, for a property that the signature cannot express (a size).
  // [stream-serial]
  plugrad_status (*run)(const struct plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op);
  // Returns how many bytes of device memory run needs for op, or UINT64_MAX if there is too little host memory to find out:
  // run is not called then. op's number and workspace are not set yet. May be null. [any]
  uint64_t (*workspace)(const struct plugrad_kernel* kernel, const plugrad_op* op);
} plugrad_kernel;

// The key by which resolve finds a kernel. Owned by the host, valid during the call.
typedef struct plugrad_signature {
  uint32_t struct_size;
  uint32_t opcode;
  uint32_t flags;   // PLUGRAD_ACCUMULATE, ...: the kernel has to support all of them
  uint16_t layout;  // the class: the OR of the views' layout bits
  uint8_t outputs, inputs;
  uint8_t dtypes[PLUGRAD_MAX_OPERANDS];  // of the outputs, then of the inputs; 0 beyond
  const void* attributes;                // null: no opcode's kernel depends on its attributes yet
} plugrad_signature;

// One side of a copy. Owned by the host, valid during the call.
typedef struct plugrad_place {
  uint32_t struct_size;
  uint32_t kind;           // HOST (plain memory), PINNED, DEVICE
  plugrad_device* device;  // the buffer's device; PINNED: the pinning device; HOST: null. If the copy's stream is null, a
                           // place of kind HOST or PINNED names the device of the other place instead
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

// The failure that sync stores when it returns DEVICE_ERROR: the number of the first failed op is in first .. last.
typedef struct plugrad_failure {
  uint32_t struct_size;   // set by the host
  plugrad_status status;  // the status of the op itself: DEVICE_ERROR, INDEX_ERROR
  uint64_t first, last;   // numbers on the stream; equal where the device knows the op
} plugrad_failure;

typedef struct plugrad_option {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  const char* key;
  const char* value;
} plugrad_option;

// The user's settings for a device: "threads", "memory" (bytes), "flush_to_zero" (0, 1), and the plugin's own keys.
typedef struct plugrad_options {
  uint32_t struct_size;
  uint32_t count;
  uint64_t stride;  // bytes from one item to the next
  const plugrad_option* items;
} plugrad_options;

// Describes a device. The host zeroes it and sets struct_size; open fills the fields within struct_size.
typedef struct plugrad_device_info {
  uint32_t struct_size;
  uint32_t capabilities;
  uint64_t alignment;   // bytes, a power of two: of every buffer, and of the offsets where the host divides a buffer
  uint64_t memory;      // bytes installed; 0: unknown
  int32_t dlpack_type;  // DLDeviceType: 1 CPU, 2 CUDA, ...; 0: none
  int32_t dlpack_index;
  int32_t numa_node;  // -1: unknown
  uint32_t reserved;  // 0
  char name[64];      // for people: "NVIDIA H200"; UTF-8, ends in 0
  char identity[64];  // UUID or PCI address; may be empty
} plugrad_device_info;

// The host's functions. Lives as long as the process. The fields up to and including report never change, in any major.
typedef struct plugrad_host {
  uint32_t struct_size;
  uint32_t revision;
  const uint64_t* layouts;  // revision + 1 hashes
  // Records why the running call returns this status; copies message (UTF-8). [any]
  void (*report)(const struct plugrad_host* host, plugrad_status status, const char* message);
  // Writes a line to the host's log; copies message. [any]
  void (*log)(const struct plugrad_host* host, uint32_t level, const char* message);
  // Returns the extension with this name ("name/revision"), or null. [any]
  const void* (*get_extension)(const struct plugrad_host* host, const char* name);
} plugrad_host;

// The plugin's table. Static, constant; no work happens before count or open. The fields through layouts never change.
typedef struct plugrad_backend {
  uint32_t struct_size;
  uint32_t revision;
  const uint64_t* layouts;  // revision + 1 hashes
  const char* name;         // "cpu": [a-z][a-z0-9_-]*; the device is "cpu:0"
  const char* version;      // the plugin's own, for people

  // Stores the number of devices. A missing device or driver is not an error: store 0, pass the reason to host->report with
  // PLUGRAD_OK, and return PLUGRAD_OK. May load further libraries and start a driver: the host calls it once per process,
  // and only when the program names a device of the plugin or lists devices. [any]
  plugrad_status (*count)(const plugrad_host* host, uint32_t* devices);
  // Opens device `index` for this host; each call creates another handle. Returns INVALID for an index not below the number
  // stored by count, and for an unknown option; for an unknown option it reports the known options. May load further
  // libraries and wait. [any]
  plugrad_status (*open)(const plugrad_host* host, uint32_t index, const plugrad_options* options, plugrad_device** device,
                         plugrad_device_info* info);
  // Returns the kernel for a signature, or null. The result never changes, so the host caches it. May take seconds, load
  // further libraries and wait. Reports nothing. The host holds no lock. [any]
  const plugrad_kernel* (*resolve)(plugrad_device* device, const plugrad_signature* signature);
  // Returns the extension with this name ("name/revision"), or null. The pointer may be null. [any]
  const void* (*get_extension)(const char* name);

  // Memory. Provide alloc and free, or with HOST_MEM neither (the host then allocates). Without HOST_MEM provide copy too.
  // Allocates bytes (above 0), aligned to info.alignment; the contents are unspecified. May wait. The host asks for few
  // segments and cuts them itself; where a driver limits the number of allocations, the plugin joins several segments in
  // one. If the device takes no buffer of this size, alloc returns OUT_OF_MEMORY and reports the largest size.
  // [device-serial]
  plugrad_status (*alloc)(plugrad_device* device, uint64_t bytes, plugrad_buffer** buffer);
  // Frees a buffer. Nothing in flight uses the buffer, unless the device is lost. May wait; reports no failure.
  // [device-serial]
  void (*free)(plugrad_device* device, plugrad_buffer* buffer);
  // Stores how many bytes of device memory are free now and how many are installed; may be null. [any]
  plugrad_status (*memory_info)(plugrad_device* device, uint64_t* free_bytes, uint64_t* total_bytes);
  // Allocate and free host memory for direct access by the device (PINNED). Both may be null. May wait. [device-serial]
  plugrad_status (*pin)(plugrad_device* device, uint64_t bytes, void** address);
  void (*unpin)(plugrad_device* device, void* address);

  // Submits a copy, in stream order. HOST in `to`: waits until the bytes have arrived; returns DEVICE_ERROR if earlier work
  // failed, and the bytes are then unspecified. HOST in `from`: the caller may reuse the source on return; waits at most for
  // staging memory of the same stream. DEVICE to DEVICE may copy between two devices of the plugin, and may return
  // UNSUPPORTED. Otherwise as kernel->run. With HOST_MEM and without ASYNC it may be null (the host copies). [stream-serial]
  plugrad_status (*copy)(plugrad_stream* stream, const plugrad_copy* copy);

  // Streams: provide all four with ASYNC, none without. The ops and copies of a stream execute in the order of submission.
  // The host numbers them 1, 2, ...; after a refused call (any status but OK) the next call takes the same number.
  // Creates a stream. May wait. [device-serial]
  plugrad_status (*stream_create)(plugrad_device* device, uint32_t role, plugrad_stream** stream);
  // Stores the *number up to which nothing is in flight: each number up to it is done, failed or dropped. It never
  // decreases, and repeated calls reach the last number submitted before. Returns OK if all up to *number succeeded;
  // DEVICE_ERROR if a failure waits for sync; DEVICE_LOST with the last number submitted. Does not call host->report. If a
  // plugin records work and submits it in batches, it has to submit the recorded work here, at least when nothing is in
  // flight. Waits at most for a lock held by a submission. [any]
  plugrad_status (*completed)(plugrad_stream* stream, uint64_t* number);
  // Work submitted to `stream` after this call waits until op *number of `other` has ended, even by failing. Raises *number
  // to the last number covered by the wait: once work behind the wait is done, completed(other) stores at least *number.
  // Returns INVALID for a number not given to `other` yet. The devices may differ, the plugin may not. [stream-serial] for
  // stream, [any] for other
  plugrad_status (*wait)(plugrad_stream* stream, plugrad_stream* other, uint64_t* number);
  // Waits for all submitted work. With DEVICE_ERROR it stores the failure and clears it from the stream. [stream-serial]
  plugrad_status (*sync)(plugrad_stream* stream, plugrad_failure* failure);

  uint32_t unnamed_use;  // PLUGRAD_ONLY_BY_NAME, ...
  uint32_t reserved;     // 0
} plugrad_backend;

static_assert(sizeof(void*) == 8, "plugrad needs 64-bit addresses");
static_assert(sizeof(plugrad_view) == 160, "the view is frozen");
static_assert(sizeof(plugrad_op) == 64 && sizeof(plugrad_kernel) == 24 && sizeof(plugrad_signature) == 40, "layout");
static_assert(sizeof(plugrad_axis) == 8 && sizeof(plugrad_sort) == 12 && sizeof(plugrad_scan) == 12, "layout");
static_assert(sizeof(plugrad_fft) == 24, "layout");
static_assert(sizeof(plugrad_attention) == 16 && sizeof(plugrad_norm) == 16, "layout");
static_assert(sizeof(plugrad_sgd) == 24 && sizeof(plugrad_adam) == 40, "layout");
static_assert(sizeof(plugrad_place) == 32 && sizeof(plugrad_copy) == 88 && sizeof(plugrad_failure) == 24, "layout");
static_assert(sizeof(plugrad_option) == 24 && sizeof(plugrad_options) == 24, "layout");
static_assert(sizeof(plugrad_device_info) == 168 && sizeof(plugrad_host) == 40 && sizeof(plugrad_backend) == 152, "layout");

// The one exported symbol. Returns the same static table on every call, never null. Must not keep host. [any]
typedef const plugrad_backend* (*plugrad_backend_entry)(const plugrad_host* host);
#ifndef PLUGRAD_NO_ENTRY  // for languages that export the symbol by a declaration of their own, without const
PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host);
#endif

#ifdef __cplusplus
}
#endif
