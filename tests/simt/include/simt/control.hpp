// What a test may ask of the emulator and tell it, beside CUDA's own functions.
#pragma once
#include <cstdint>
#include <string>

namespace simt {

// Read once, before the first device is used, from PLUGRAD_SIMT: "devices=2,schedules=1".
struct Settings {
  uint64_t devices = 2;      // 0: as without hardware
  uint64_t driver = 13000;   // CUDA's number of the driver's version; 0: there is no driver
  uint64_t runtime = 13000;  // and of the runtime's
  uint64_t capability = 90;  // of the devices
  uint64_t memory = 4096;    // MiB a device
  uint64_t multiprocessors = 4;  // of a device: few, so that small tensors make kernels go on to further tiles
  uint64_t schedules = 3;    // orders in which a small launch runs, and which have to agree; 1: one order
  uint64_t repeats = 2;      // how many launches of a kernel and shape run in all of these orders
  uint64_t seed = 1;         // of the shuffled order
  uint64_t late = 0;         // microseconds that a stream sleeps before each job
  uint64_t malloc_fails = 0, launch_refused = 0, launch_faults = 0;  // the n-th such call of the process; 0: none
};
Settings& settings();
// Throws std::invalid_argument for a key it does not know.
void read_settings(const std::string& text, Settings& into);

enum class Injection { malloc_fails, launch_refused, launch_faults };
// The n-th such call from now on fails, once.
void inject(Injection injection, uint64_t n);
// The n-th call of the runtime from now on returns this cudaError_t, once; the device goes on.
void inject_error(int error, uint64_t n);
// Another library's thread captures a graph in the global mode. The end returns whether nobody has broken the capture.
void begin_capture_elsewhere();
bool end_capture_elsewhere();
// Whether a call has used the device, which takes memory there.
bool has_context(int device);

// What was found last: names the kernel, block and thread. Empty after clear_fault.
std::string last_fault();
void clear_fault();
uint64_t launches();   // kernels that ran
uint64_t schedules();  // orders they ran in

}  // namespace simt
