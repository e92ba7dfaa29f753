// Functions of the operating system.
#pragma once
#include <cstdint>
#include <string>
#include <typeinfo>

namespace plugrad::platform {

// The absolute path, links resolved, of this library's file: the program's if the library is linked statically.
std::string core_file();
// An environment variable, or null; always null in a program with raised privileges.
const char* environment(const char* name);
// The number of shared objects ever loaded.
uint64_t libraries_loaded();
// Calls a function with the thread's argument when a thread ends, after the destructors of its thread_local objects: they
// may be tensors. Not called for the main thread.
class ThreadEnd {
 public:
  explicit ThreadEnd(void (*function)(void*));  // throws std::system_error
  void set(void* argument);

 private:
  uint32_t key_;
};
// The id of the running process.
int64_t process();
void at_fork_in_child(void (*handler)());
void at_fork(void (*prepare)(), void (*parent)(), void (*child)());
// Allocates pages for a large block, aligned to 2 MB, and huge where the system supports it; null if memory is exhausted.
void* allocate_pages(uint64_t bytes);
void free_pages(void* pages, uint64_t bytes);
// Tells the address sanitizer to forbid access to memory, or to permit it again. No effect without the sanitizer.
void forbid_access(const void* memory, uint64_t bytes);
void permit_access(const void* memory, uint64_t bytes);
// The name of a type as the program's source has it: "plugrad::nn::Linear".
std::string type_name(const std::type_info& type);
// The machine's memory in bytes.
uint64_t installed_memory();

}  // namespace plugrad::platform
