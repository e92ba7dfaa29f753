#include <core/runtime/platform.hpp>

#include <cerrno>
#include <cxxabi.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <link.h>
#include <memory>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace plugrad::platform {
namespace {
struct Closer {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, Closer>;

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "plugrad runs on x86-64 and aarch64"
#endif

std::string check_segments(FILE* file, const Elf64_Ehdr& header, uint64_t size) {
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > size ||
      header.e_phnum * sizeof(Elf64_Phdr) > size - header.e_phoff)
    return "truncated: its program headers lie beyond its end";
  std::fseek(file, static_cast<long>(header.e_phoff), SEEK_SET);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (std::fread(&segment, sizeof segment, 1, file) != 1) return "truncated: its program headers cannot be read";
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
      return "truncated: a segment ends at byte " + std::to_string(segment.p_offset + segment.p_filesz) + " of " +
             std::to_string(size);
  }
  return "";
}
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

std::string check_shared_object(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about)) return std::strerror(errno);
  if (!S_ISREG(about.st_mode)) return "not a regular file";
  const File file(std::fopen(path.c_str(), "re"));
  if (!file) return std::strerror(errno);
  Elf64_Ehdr header;
  if (std::fread(&header, sizeof header, 1, file.get()) != 1) return "too short for an ELF file";
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "not an ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "not a 64-bit little-endian ELF file";
  if (header.e_machine != kMachine)
    return "built for another machine (ELF machine " + std::to_string(header.e_machine) + ", expected " +
           std::to_string(kMachine) + ")";
  if (header.e_type != ET_DYN) return "not a shared object (ELF type " + std::to_string(header.e_type) + ")";
  return check_segments(file.get(), header, static_cast<uint64_t>(about.st_size));
}

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
