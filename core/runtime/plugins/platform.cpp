#include <core/runtime/plugins/platform.hpp>

#include <cxxabi.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace plugrad::platform {
namespace {
struct Closer {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, Closer>;
}  // namespace

// If LD_LIBRARY_PATH is relative, dladdr returns a name relative to the process's initial directory. The kernel's list of
// mappings has absolute names, even after a change of directory.
std::string core_file() {
  const auto here = reinterpret_cast<std::uintptr_t>(&core_file);
  const File maps(std::fopen("/proc/self/maps", "re"));
  char line[8192];
  while (maps && std::fgets(line, sizeof line, maps.get())) {
    std::uintptr_t from = 0, to = 0;
    int name = 0;
    if (std::sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &name) != 2 || here < from || here >= to ||
        line[name] != '/')
      continue;
    return std::string(line + name, std::strcspn(line + name, "\n"));
  }
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&core_file), &info);
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(info.dli_fname, nullptr), &std::free);
  return real ? real.get() : info.dli_fname;
}

const char* environment(const char* name) { return secure_getenv(name); }

uint64_t libraries_loaded() {
  uint64_t adds = 0;
  dl_iterate_phdr([](dl_phdr_info* info, size_t, void* out) { return *static_cast<uint64_t*>(out) = info->dlpi_adds, 1; },
                  &adds);
  return adds;
}

ThreadEnd::ThreadEnd(void (*function)(void*)) {
  pthread_key_t key;
  if (const int error = pthread_key_create(&key, function))
    throw std::system_error(error, std::generic_category(), "thread-specific storage");
  key_ = key;
}
void ThreadEnd::set(void* argument) {
  if (const int error = pthread_setspecific(key_, argument))
    throw std::system_error(error, std::generic_category(), "thread-specific storage");
}

int64_t process() { return getpid(); }
void at_fork_in_child(void (*handler)()) { pthread_atfork(nullptr, nullptr, handler); }
void at_fork(void (*prepare)(), void (*parent)(), void (*child)()) { pthread_atfork(prepare, parent, child); }

// A 2 MB page costs one page fault instead of 512.
void* allocate_pages(uint64_t bytes) {
  constexpr uint64_t kHuge = 2 << 20;
  const uint64_t reserved = bytes + kHuge;
  char* base = static_cast<char*>(mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base == MAP_FAILED) return nullptr;
  const uint64_t skip = (kHuge - reinterpret_cast<std::uintptr_t>(base) % kHuge) % kHuge;
  if (skip) munmap(base, skip);
  if (skip != kHuge) munmap(base + skip + bytes, kHuge - skip);
  madvise(base + skip, bytes, MADV_HUGEPAGE);
  return base + skip;
}

void free_pages(void* pages, uint64_t bytes) { munmap(pages, bytes); }

#if defined(__SANITIZE_ADDRESS__)
void forbid_access(const void* memory, uint64_t bytes) { __asan_poison_memory_region(memory, bytes); }
void permit_access(const void* memory, uint64_t bytes) { __asan_unpoison_memory_region(memory, bytes); }
#else
void forbid_access(const void*, uint64_t) {}
void permit_access(const void*, uint64_t) {}
#endif

std::string type_name(const std::type_info& type) {
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), std::free);
  return name ? name.get() : type.name();
}

uint64_t installed_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace plugrad::platform
