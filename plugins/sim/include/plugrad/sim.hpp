// The extension "sim/0" of the plugin sim, a plugrad_sim, lets tests control and inspect the plugin. The plugin offers
// native.h too; the native handle of a stream is valid for native.h only, and there is no default stream.
// A null device means all opened devices.
#pragma once
#include <plugrad/sdk/abi.h>

extern "C" {

// Faults. arm sets each fault for the n-th call from then on; all faults but FULL happen once.
enum {
  PLUGRAD_SIM_FAIL = 0,           // a run: fails when it is executed, DEVICE_ERROR
  PLUGRAD_SIM_INDEX_ERROR = 1,    // a run: fails when it is executed, INDEX_ERROR
  PLUGRAD_SIM_REFUSE = 2,         // a run: returns INTERNAL at once
  PLUGRAD_SIM_UNSUPPORTED = 3,    // a run: returns UNSUPPORTED at once
  PLUGRAD_SIM_NO_ROOM = 4,        // a run: returns OUT_OF_MEMORY at once
  PLUGRAD_SIM_LOSE = 5,           // a run: the device is lost when it is executed
  PLUGRAD_SIM_SLOW = 6,           // a run: takes 20 ms longer
  PLUGRAD_SIM_FAIL_COPY = 7,      // a copy, unless to plain host memory: fails when it is executed, DEVICE_ERROR
  PLUGRAD_SIM_OUT_OF_MEMORY = 8,  // an alloc: returns OUT_OF_MEMORY
  PLUGRAD_SIM_FULL = 9,           // an alloc and all later allocs: return OUT_OF_MEMORY, until arm ends the fault
  PLUGRAD_SIM_FAULTS = 10,
};

typedef struct plugrad_sim {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  // Returns the number of hazards since loading: an access without a wait for an earlier access; memory freed while work in
  // flight may still use it; bytes written behind a buffer. Detected at submission, with any timing. [any]
  uint64_t (*hazards)(void);
  // Stores the description of the last hazard, at most `bytes` with the final 0; empty without a hazard. [any]
  void (*last_hazard)(char* text, uint64_t bytes);
  // Returns the last opened handle for this index, or null. [any]
  plugrad_device* (*device)(uint32_t index);
  // Returns the number of accepted kernel calls of an opcode, or of all opcodes (0). [any]
  uint64_t (*runs)(plugrad_device* device, uint32_t opcode);
  // Returns the number of accepted copies. [any]
  uint64_t (*copies)(plugrad_device* device);
  // Return the number of successful calls of alloc, and the bytes allocated now, as requested. [any]
  uint64_t (*allocs)(plugrad_device* device);
  uint64_t (*allocated)(plugrad_device* device);
  // Sets the delay of every op and copy from now on. [any]
  void (*set_latency)(plugrad_device* device, uint32_t micros);
  // Arms a fault for the n-th call from now on; 0 disarms it. [any]
  void (*arm)(plugrad_device* device, uint32_t fault, uint64_t n);
  // Stops streams of these roles (1 << role) from executing until a later call releases them; 0 releases all. [any]
  void (*hold)(plugrad_device* device, uint32_t roles);
  // Returns the number of accepted runs of lists, batches excluded. [any]
  uint64_t (*lists)(plugrad_device* device);
  // Returns the number of accepted runs of batches. [any]
  uint64_t (*batches)(plugrad_device* device);
} plugrad_sim;

// Returns the plugin's table, for programs that link it.
const plugrad_backend* plugrad_sim_backend(const plugrad_host* host);
}
