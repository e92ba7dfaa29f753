#include <process/shared_object.hpp>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace plugrad {
namespace {
#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "plugrad runs on x86-64 and aarch64"
#endif
constexpr uint64_t kAddressSpace = 1ull << 47, kMostTable = 256 << 20, kMostEntries = 1 << 16, kMostThreadBytes = 1 << 30;

using Segments = std::vector<Elf64_Phdr>;

// A file, open for reading.
class File {
 public:
  // Never blocks, not even on a pipe.
  explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  bool about(struct stat& known) const { return fstat(descriptor_, &known) == 0; }
  // Reads exactly `bytes` bytes.
  bool read(uint64_t offset, void* to, uint64_t bytes) const {
    for (uint64_t done = 0; done < bytes;) {
      const ssize_t got = pread(descriptor_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
      if (got <= 0) return false;
      done += static_cast<uint64_t>(got);
    }
    return true;
  }

 private:
  int descriptor_;
};

int64_t nanoseconds(const timespec& t) { return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec; }
FileIdentity identity(const struct stat& s) {
  return {s.st_dev, s.st_ino, static_cast<uint64_t>(s.st_size), nanoseconds(s.st_mtim), nanoseconds(s.st_ctim)};
}

std::string check_header(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "not an ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "not a 64-bit little-endian ELF file";
  if (header.e_machine != kMachine)
    return "built for another machine (ELF machine " + std::to_string(header.e_machine) + ", expected " +
           std::to_string(kMachine) + ")";
  if (header.e_type != ET_DYN) return "not a shared object (ELF type " + std::to_string(header.e_type) + ")";
  return "";
}

std::string check_segment(const Elf64_Phdr& segment, uint64_t size) {
  if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) return "";
  if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
    return "truncated: a segment ends at byte " + std::to_string(segment.p_offset + segment.p_filesz) + " of " +
           std::to_string(size);
  if (segment.p_type == PT_DYNAMIC) return "";
  if (segment.p_memsz < segment.p_filesz) return "damaged: a segment has fewer bytes in memory than in the file";
  if (segment.p_vaddr > kAddressSpace || segment.p_memsz > kAddressSpace - segment.p_vaddr)
    return "damaged: a segment lies beyond the address space";
  if (segment.p_align > 1 &&
      (!std::has_single_bit(segment.p_align) || (segment.p_vaddr - segment.p_offset) % segment.p_align))
    return "damaged: a segment is misaligned";
  return "";
}

// glibc treats a missing PT_GNU_STACK like an executable stack: both make the stacks of all threads executable.
std::string check_stack(const Segments& segments) {
  const auto stack = std::ranges::find(segments, Elf64_Word{PT_GNU_STACK}, &Elf64_Phdr::p_type);
  if (stack != segments.end() && !(stack->p_flags & PF_X)) return "";
  return "it asks for an executable stack, which would weaken the whole process: link it with -z noexecstack";
}

// Whether the bytes lie within a segment mapped by the system loader with these permissions.
bool is_mapped(const Segments& segments, uint64_t address, uint64_t bytes, uint32_t permissions) {
  return std::ranges::any_of(segments, [&](const Elf64_Phdr& s) {
    return s.p_type == PT_LOAD && (s.p_flags & permissions) == permissions && address >= s.p_vaddr &&
           address - s.p_vaddr <= s.p_memsz && bytes <= s.p_memsz - (address - s.p_vaddr);
  });
}

// The system loader changes the protection of these parts, or reads them, without comparing them with its mappings: parts
// with wrong addresses reach into other libraries.
std::string check_parts(const Segments& segments) {
  for (const Elf64_Phdr& s : segments) {
    const bool part =
        s.p_type == PT_DYNAMIC || s.p_type == PT_GNU_RELRO || s.p_type == PT_TLS || s.p_type == PT_GNU_EH_FRAME;
    const uint64_t bytes = s.p_type == PT_TLS ? s.p_filesz : s.p_memsz;
    if (part && !is_mapped(segments, s.p_vaddr, bytes, 0)) return "damaged: a part lies outside of its segments";
    if (s.p_type == PT_TLS && s.p_memsz > kMostThreadBytes) return "damaged: it asks for too much memory in each thread";
  }
  return "";
}

std::string check_segments(const Segments& segments, uint64_t size) {
  uint64_t end = 0;
  bool dynamic = false;
  for (const Elf64_Phdr& segment : segments) {
    if (std::string damage = check_segment(segment, size); !damage.empty()) return damage;
    dynamic |= segment.p_type == PT_DYNAMIC;
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr < end) return "damaged: its segments overlap";
    end = segment.p_vaddr + segment.p_memsz;
  }
  if (!end || !dynamic) return "damaged: it has nothing to load";
  std::string damage = check_parts(segments);
  return damage.empty() ? check_stack(segments) : damage;
}

// The place in the file of an address in memory.
std::optional<uint64_t> place_of(const Segments& segments, uint64_t address, uint64_t bytes) {
  for (const Elf64_Phdr& s : segments)
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr <= s.p_filesz &&
        bytes <= s.p_filesz - (address - s.p_vaddr))
      return s.p_offset + (address - s.p_vaddr);
  return std::nullopt;
}

// The dynamic section: the file's instructions to the system loader.
class Dynamic {
 public:
  Dynamic(const File& file, const Segments& segments) : file_(file), segments_(segments) {
    const auto section = std::ranges::find(segments, Elf64_Word{PT_DYNAMIC}, &Elf64_Phdr::p_type);
    entries_.resize(std::min(section->p_filesz / sizeof(Elf64_Dyn), kMostEntries));
    if (!file.read(section->p_offset, entries_.data(), entries_.size() * sizeof(Elf64_Dyn))) entries_.clear();
    entries_.erase(std::ranges::find(entries_, Elf64_Sxword{DT_NULL}, &Elf64_Dyn::d_tag), entries_.end());
  }
  bool has(Elf64_Sxword tag) const { return std::ranges::find(entries_, tag, &Elf64_Dyn::d_tag) != entries_.end(); }
  uint64_t value(Elf64_Sxword tag) const {
    const auto found = std::ranges::find(entries_, tag, &Elf64_Dyn::d_tag);
    return found == entries_.end() ? 0 : found->d_un.d_val;
  }
  // The table at the address with this tag; nothing if it does not lie in the file.
  template <class Entry> std::optional<std::vector<Entry>> table_of(Elf64_Sxword address, uint64_t count) const {
    const uint64_t bytes = count * sizeof(Entry);
    const auto place = place_of(segments_, value(address), bytes);
    if (!place || count > kMostTable / sizeof(Entry)) return std::nullopt;
    std::vector<Entry> entries(count);
    if (!file_.read(*place, entries.data(), bytes)) return std::nullopt;
    return entries;
  }
  // The same, with a tag for the table's size in bytes. Empty if the file has no such table.
  template <class Entry> std::optional<std::vector<Entry>> table(Elf64_Sxword address, Elf64_Sxword size) const {
    const uint64_t bytes = value(size);
    if (!has(address) || !bytes) return std::vector<Entry>();
    return bytes % sizeof(Entry) ? std::nullopt : table_of<Entry>(address, bytes / sizeof(Entry));
  }
  // Calls next(entry, its place in the file) for at most count entries. next returns the distance to the next entry in
  // bytes, or 0 at the end.
  template <class Entry, class Next> void walk(uint64_t place, uint64_t count, const Next& next) const {
    Entry entry;
    for (uint64_t i = 0; i < std::min(count, kMostEntries) && file_.read(place, &entry, sizeof entry); ++i) {
      const uint64_t step = next(entry, place);
      if (!step) return;
      place += step;
    }
  }
  template <class Entry, class Next> void walk_at(Elf64_Sxword address, Elf64_Sxword count, const Next& next) const {
    if (const auto place = place_of(segments_, value(address), sizeof(Entry)); has(address) && place)
      walk<Entry>(*place, value(count), next);
  }

 private:
  const File& file_;
  const Segments& segments_;
  std::vector<Elf64_Dyn> entries_;
};

// The largest index of the versions defined (Elf64_Verdef) or needed (Elf64_Vernaux) by the file; 1 without versions.
uint32_t largest_version(const Dynamic& dynamic) {
  uint32_t largest = 1;
  dynamic.walk_at<Elf64_Verdef>(DT_VERDEF, DT_VERDEFNUM, [&](const Elf64_Verdef& each, uint64_t) {
    largest = std::max<uint32_t>(largest, each.vd_ndx);
    return each.vd_next;
  });
  dynamic.walk_at<Elf64_Verneed>(DT_VERNEED, DT_VERNEEDNUM, [&](const Elf64_Verneed& each, uint64_t place) {
    dynamic.walk<Elf64_Vernaux>(place + each.vn_aux, each.vn_cnt, [&](const Elf64_Vernaux& version, uint64_t) {
      largest = std::max<uint32_t>(largest, version.vna_other & 0x7fff);
      return version.vna_next;
    });
    return each.vn_next;
  });
  return largest;
}

// Checks the symbols from 0 to `last`, the largest index in a relocation. The system loader uses their names and versions as
// indices.
std::string check_symbols(const Dynamic& dynamic, uint64_t last) {
  const auto symbols = dynamic.table_of<Elf64_Sym>(DT_SYMTAB, last + 1);
  if (!symbols) return "damaged: its symbols lie outside of the file";
  const uint64_t names = dynamic.value(DT_STRSZ);
  for (const Elf64_Sym& each : *symbols)
    if (each.st_name >= names) return "damaged: the name of a symbol lies outside of the file";
  if (!dynamic.has(DT_VERSYM)) return "";
  const auto versions = dynamic.table_of<Elf64_Half>(DT_VERSYM, last + 1);
  if (!versions) return "damaged: the versions of its symbols lie outside of the file";
  const uint32_t largest = largest_version(dynamic);
  for (const Elf64_Half each : *versions)
    if ((each & 0x7fffu) > largest) return "damaged: a symbol has a version that the file does not name";
  return "";
}

// The system loader writes to the address of a relocation wherever it lies: a wrong address changes other libraries.
std::string check_relocations(const Dynamic& dynamic, const Segments& segments) {
  const uint32_t writable = dynamic.has(DT_TEXTREL) ? 0 : PF_W;
  uint64_t last = 0;
  for (const auto& [address, size] : {std::pair{DT_RELA, DT_RELASZ}, std::pair{DT_JMPREL, DT_PLTRELSZ}}) {
    const auto relocations = dynamic.table<Elf64_Rela>(address, size);
    if (!relocations) return "damaged: its relocations lie outside of the file";
    for (const Elf64_Rela& each : *relocations) {
      if (each.r_info && !is_mapped(segments, each.r_offset, sizeof(uint64_t), writable))
        return "damaged: a relocation lies outside of its segments";
      last = std::max<uint64_t>(last, ELF64_R_SYM(each.r_info));
    }
  }
  return check_symbols(dynamic, last);
}

// A sanitizer's runtime ends the process if it is loaded late.
std::string check_sanitizers(const Dynamic& dynamic) {
  struct Sanitizer {
    const char *symbol, *name, *flag;
  };
  constexpr Sanitizer kSanitizers[] = {{"__asan_init", "address sanitizer", "address"},
                                       {"__tsan_init", "thread sanitizer", "thread"},
                                       {"__msan_init", "memory sanitizer", "memory"}};
  const auto names = dynamic.table<char>(DT_STRTAB, DT_STRSZ);
  if (!names || names->empty()) return "damaged: its names of symbols lie outside of the file";
  const std::string_view all(names->data(), names->size());
  for (const Sanitizer& each : kSanitizers) {
    const bool wanted = all.find('\0' + std::string(each.symbol) + '\0') != std::string_view::npos;
    if (wanted && !dlsym(RTLD_DEFAULT, each.symbol))
      return std::string("built with the ") + each.name +
             ", but this program is not: build both with -fsanitize=" + each.flag + ", or neither";
  }
  return "";
}

std::string check_contents(const File& file, uint64_t size) {
  Elf64_Ehdr header;
  if (!file.read(0, &header, sizeof header)) return "too short for an ELF file";
  if (std::string damage = check_header(header); !damage.empty()) return damage;
  const uint64_t bytes = header.e_phnum * sizeof(Elf64_Phdr);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > size || bytes > size - header.e_phoff)
    return "truncated: its program headers lie beyond its end";
  Segments segments(header.e_phnum);
  if (!file.read(header.e_phoff, segments.data(), bytes)) return "truncated: its program headers cannot be read";
  if (std::string damage = check_segments(segments, size); !damage.empty()) return damage;
  const Dynamic dynamic(file, segments);
  if (std::string damage = check_relocations(dynamic, segments); !damage.empty()) return damage;
  return check_sanitizers(dynamic);
}
}  // namespace

FileIdentity identity_of(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 ? identity(about) : FileIdentity{};
}

std::string check_shared_object(const std::string& path, FileIdentity& read) {
  const File file(path);
  if (!file.is_open()) return errno == ENXIO ? "not a regular file" : std::strerror(errno);
  struct stat about;
  if (!file.about(about)) return std::strerror(errno);
  if (!S_ISREG(about.st_mode)) return "not a regular file";
  read = identity(about);
  return check_contents(file, read.bytes);
}

}  // namespace plugrad
