// NCCL and CUDA's driver, opened when a group is opened, and never linked: the plugin needs neither to be built. What is
// declared here follows nccl.h of NCCL 2.14 and later, and cuda.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace nccl {

struct Comm;
struct Stream;
struct Event;
using Result = int;
constexpr Result kSuccess = 0, kInProgress = 7;

struct UniqueId {
  char bytes[128];
};
// Ends with the fields of NCCL 2.14; a later NCCL takes its defaults for the others.
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};
constexpr unsigned kMagic = 0xcafebeef, kVersion = 21400;

enum Type { kInt8 = 0, kUint8 = 1, kInt32 = 2, kInt64 = 4, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBFloat16 = 9 };
enum Reduction { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4 };

struct Functions {
  Result (*get_version)(int* version);
  Result (*get_unique_id)(UniqueId* id);
  Result (*init_rank)(Comm** comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*finalize)(Comm* comm);
  Result (*destroy)(Comm* comm);
  Result (*abort)(Comm* comm);
  Result (*async_error)(Comm* comm, Result* result);
  const char* (*error_string)(Result result);
  const char* (*last_error)(Comm* comm);
  Result (*broadcast)(const void* from, void* to, size_t count, int type, int root, Comm* comm, Stream* stream);
  Result (*all_reduce)(const void* from, void* to, size_t count, int type, int how, Comm* comm, Stream* stream);
  Result (*reduce_scatter)(const void* from, void* to, size_t count, int type, int how, Comm* comm, Stream* stream);
  Result (*all_gather)(const void* from, void* to, size_t count, int type, Comm* comm, Stream* stream);
  Result (*send)(const void* from, size_t count, int type, int peer, Comm* comm, Stream* stream);
  Result (*recv)(void* to, size_t count, int type, int peer, Comm* comm, Stream* stream);
  Result (*group_start)();
  Result (*group_end)();
};

// CUDA's driver: its results are 0 for success.
constexpr int kNotReady = 600;
constexpr unsigned kNonBlocking = 1, kDisableTiming = 2;
using DeviceAddress = unsigned long long;
struct Driver {
  int (*init)(unsigned flags);
  int (*count)(int* devices);
  int (*device)(int* device, int index);
  int (*retain_context)(void** context, int device);
  int (*set_context)(void* context);
  int (*create_stream)(Stream** stream, unsigned flags);
  int (*destroy_stream)(Stream* stream);
  int (*allocate)(DeviceAddress* address, size_t bytes);
  int (*free)(DeviceAddress address);
  int (*allocate_host)(void** address, size_t bytes);
  int (*free_host)(void* address);
  int (*upload)(DeviceAddress to, const void* from, size_t bytes, Stream* stream);
  int (*download)(void* to, DeviceAddress from, size_t bytes, Stream* stream);
  int (*create_event)(Event** event, unsigned flags);
  int (*record)(Event* event, Stream* stream);
  int (*query)(Event* event);
  int (*destroy_event)(Event* event);
  int (*error_string)(int result, const char** text);
};

struct Libraries {
  Functions nccl{};
  Driver driver{};
  std::string version;  // of NCCL: "2.27.3"
};

// Opens both, once in the process. Throws std::runtime_error with the places searched and the remedy.
const Libraries& libraries();

}  // namespace nccl
