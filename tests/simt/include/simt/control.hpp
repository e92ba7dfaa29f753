// Functions with which a test queries and controls the emulator, in addition to CUDA's own.
#pragma once
#include <cstdint>
#include <string>

namespace simt {

// The emulator reads the settings once from PLUGRAD_SIMT, before the first device is used: "devices=2,schedules=1".
struct Settings {
  uint64_t devices = 2;          // 0: as on a machine without a GPU
  uint64_t driver = 13000;       // the driver's version as CUDA encodes it; 0: no driver
  uint64_t runtime = 13000;      // the runtime's version
  uint64_t capability = 90;      // of the devices
  uint64_t memory = 4096;        // MiB per device
  uint64_t multiprocessors = 4;  // per device: few, so that small tensors make kernels loop over tiles
  uint64_t schedules = 3;        // thread orders in which a small launch runs; their results must agree; 1: one order
  uint64_t repeats = 2;          // the first launches of each kernel and shape that run in all orders
  uint64_t seed = 1;             // of the shuffled order
  uint64_t late = 0;             // microseconds that a stream sleeps before each job
  uint64_t malloc_fails = 0, launch_refused = 0, launch_faults = 0;  // the n-th such call of the process; 0: none
};
Settings& settings();
// Throws std::invalid_argument for a key it does not know.
void read_settings(const std::string& text, Settings& into);

enum class Injection { malloc_fails, launch_refused, launch_faults };
// Makes the n-th call of this kind from now on fail, once.
void inject(Injection injection, uint64_t n);
// Makes the n-th runtime call from now on return this cudaError_t, once; the device stays usable.
void inject_error(int error, uint64_t n);
// Simulates a thread of another library that captures a graph in the global mode. end_capture_elsewhere returns whether the
// capture stayed valid.
void begin_capture_elsewhere();
bool end_capture_elsewhere();
// Returns whether a call has used the device. A context takes device memory.
bool has_context(int device);

// The last bug found, with its kernel, block and thread. Empty after clear_fault.
std::string last_fault();
void clear_fault();
uint64_t launches();   // kernels that ran
uint64_t schedules();  // thread orders in which the kernels ran

}  // namespace simt
