// What tests may ask of the plugin sim and tell it: the extension "sim/0", a plugrad_sim. It offers native.h too: the native
// handle of a stream is good for native.h alone, and there is no default stream.
// A device of null stands for all devices that were opened.
#pragma once
#include <plugrad/sdk/abi.h>

extern "C" {

// Faults, each armed for the n-th call from now on and gone once it has happened.
enum {
  PLUGRAD_SIM_FAIL = 0,         // a run: fails when it is executed, DEVICE_ERROR
  PLUGRAD_SIM_INDEX_ERROR = 1,  // a run: fails when it is executed, INDEX_ERROR
  PLUGRAD_SIM_REFUSE = 2,       // a run: answers INTERNAL at once
  PLUGRAD_SIM_UNSUPPORTED = 3,  // a run: answers UNSUPPORTED at once
  PLUGRAD_SIM_NO_ROOM = 4,      // a run: answers OUT_OF_MEMORY at once
  PLUGRAD_SIM_LOSE = 5,         // a run: the device is lost when it is executed
  PLUGRAD_SIM_SLOW = 6,         // a run: takes 20 ms longer
  PLUGRAD_SIM_FAIL_COPY = 7,    // a copy whose target is not plain host memory: fails when it is executed, DEVICE_ERROR
  PLUGRAD_SIM_OUT_OF_MEMORY = 8,  // an alloc: answers OUT_OF_MEMORY
  PLUGRAD_SIM_FAULTS = 9,
};

typedef struct plugrad_sim {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  // Accesses that nothing orders, since the file was loaded: a use that no wait puts behind an earlier one, memory freed
  // while something may still use it, bytes written behind a buffer. Found at submission, whatever the timing. [any]
  uint64_t (*hazards)(void);
  // Why the last of them counted; text receives at most bytes, with its final 0. Empty where there was none. [any]
  void (*last_hazard)(char* text, uint64_t bytes);
  // The handle that open made last for this index, or null. [any]
  plugrad_device* (*device)(uint32_t index);
  // Kernel calls that were accepted, of one opcode or (0) of all. [any]
  uint64_t (*runs)(plugrad_device* device, uint32_t opcode);
  // Copies that were accepted. [any]
  uint64_t (*copies)(plugrad_device* device);
  // Calls of alloc that answered OK; bytes allocated now, as they were asked for. [any]
  uint64_t (*allocs)(plugrad_device* device);
  uint64_t (*allocated)(plugrad_device* device);
  // How late every op and copy is from now on. [any]
  void (*set_latency)(plugrad_device* device, uint32_t micros);
  // The n-th call from now on; 0 takes the fault back. [any]
  void (*arm)(plugrad_device* device, uint32_t fault, uint64_t n);
  // Streams of these roles (1 << role) execute nothing until a later call lets them; 0 lets all. [any]
  void (*hold)(plugrad_device* device, uint32_t roles);
} plugrad_sim;

// The plugin's table, for programs that link it.
const plugrad_backend* plugrad_sim_backend(const plugrad_host* host);
}
