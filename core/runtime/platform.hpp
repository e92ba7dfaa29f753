// What is particular to the operating system.
#pragma once
#include <cstdint>
#include <string>

namespace plugrad::platform {

// The file that this library was loaded from, absolute, links resolved; the program's own where it is linked statically.
std::string core_file();
// An environment variable, or null; null in a program with raised privileges.
const char* environment(const char* name);
// Why a file cannot be a shared object for this machine, or "". Reads headers only: a damaged one can kill who loads it.
std::string check_shared_object(const std::string& path);
// How many shared objects were ever loaded.
uint64_t libraries_loaded();
// A function that is called when a thread ends, with what the thread set: after the destructors of all thread_local objects,
// which may be tensors. Not for the main thread.
class ThreadEnd {
 public:
  explicit ThreadEnd(void (*function)(void*));  // throws std::system_error
  void set(void* argument);

 private:
  uint32_t key_;
};
// The number of the running process.
int64_t process();
void at_fork_in_child(void (*handler)());
void at_fork(void (*prepare)(), void (*parent)(), void (*child)());
// Pages for large blocks: 2 MB aligned and huge where the system has them; null where there is no room.
void* allocate_pages(uint64_t bytes);
void free_pages(void* pages, uint64_t bytes);
// Tells the address sanitizer that nobody may touch free memory, and that it may be touched again. Nothing without it.
void forbid_access(const void* memory, uint64_t bytes);
void permit_access(const void* memory, uint64_t bytes);
// Bytes of memory of the machine.
uint64_t installed_memory();

}  // namespace plugrad::platform
