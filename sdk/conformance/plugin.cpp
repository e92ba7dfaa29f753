#include <sdk/conformance/plugin.hpp>

#include <process/file_text.hpp>
#include <sdk/conformance/host.hpp>

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace plugrad::conformance {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#else
constexpr uint16_t kMachine = EM_AARCH64;
#endif
constexpr const char* kEntry = "plugrad_backend_v0";

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%016" PRIx64, value);
  return text;
}

// Makes the host's check: the two sides must have equal hashes for the older of their revisions.
void require_agreement(const plugrad_backend* table, const std::string& source) {
  if (!table) throw Unloadable(source + ": the entry returned null; it must return the plugin's table");
  if (!table->layouts) throw Unloadable(source + ": the table's layouts are null; they must hold revision + 1 hashes");
  const uint32_t revision = std::min<uint32_t>(table->revision, PLUGRAD_REVISION);
  if (table->layouts[revision] != plugrad_layouts[revision])
    throw Unloadable(source + ": its layout hash of revision " + std::to_string(revision) + " is " +
                     hex(table->layouts[revision]) + ", expected " + hex(plugrad_layouts[revision]) +
                     ": it was built with a different abi.h; rebuild it with this SDK");
  if (table->struct_size < sizeof(plugrad_backend))
    throw Unloadable(source + ": the table's struct_size is " + std::to_string(table->struct_size) + ", expected at least " +
                     std::to_string(sizeof(plugrad_backend)));
}

Plugin first_call(plugrad_backend_entry entry, const std::string& source, const plugrad_host* host) {
  Plugin plugin{source, entry, nullptr, {}, {}};
  try {
    plugin.table = entry(host);
  } catch (...) {
    throw Breach("the entry function threw " + exception_text());
  }
  require_agreement(plugin.table, source);
  plugin.first_seen = *plugin.table;
  return plugin;
}

std::string read_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw Unloadable(path + ": no such file");
  if (!fs::is_regular_file(status)) throw Unloadable(path + ": not a regular file; expected the path of a plugin's file");
  const std::optional<std::string> bytes = file_text(path);
  if (!bytes) throw Unloadable(path + ": cannot be read");
  return *bytes;
}

template <class T> T record(const std::string& path, const std::string& bytes, uint64_t offset) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) throw Unloadable(path + ": the file is cut short");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

void require_whole(const std::string& path, const std::string& bytes, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = record<Elf64_Phdr>(path, bytes, header.e_phoff + uint64_t{i} * header.e_phentsize);
    if (segment.p_offset > bytes.size() || segment.p_filesz > bytes.size() - segment.p_offset)
      throw Unloadable(path + ": the file is cut short: a segment ends beyond it");
  }
}

void collect_symbols(const std::string& path, const std::string& bytes, const Elf64_Shdr& table, const Elf64_Shdr& strings,
                     std::vector<std::string>& names) {
  for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = record<Elf64_Sym>(path, bytes, table.sh_offset + at);
    const bool visible = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && symbol.st_shndx != SHN_UNDEF;
    const uint64_t name = strings.sh_offset + symbol.st_name;
    if (visible && symbol.st_shndx != SHN_ABS && name < bytes.size()) names.emplace_back(bytes.c_str() + name);
  }
}

}  // namespace

std::vector<std::string> exported_symbols(const std::string& path) {
  const std::string bytes = read_file(path);
  if (bytes.size() < sizeof(Elf64_Ehdr) || bytes.compare(0, SELFMAG, ELFMAG) != 0)
    throw Unloadable(path + ": not a shared object (no ELF header)");
  const auto header = record<Elf64_Ehdr>(path, bytes, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine || header.e_type != ET_DYN)
    throw Unloadable(path + ": a shared object for a different machine: ELF machine " + std::to_string(header.e_machine) +
                     ", expected " + std::to_string(kMachine));
  require_whole(path, bytes, header);
  std::vector<std::string> names;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = record<Elf64_Shdr>(path, bytes, header.e_shoff + uint64_t{i} * header.e_shentsize);
    if (section.sh_type != SHT_DYNSYM) continue;
    const auto strings = record<Elf64_Shdr>(path, bytes, header.e_shoff + uint64_t{section.sh_link} * header.e_shentsize);
    collect_symbols(path, bytes, section, strings, names);
  }
  return names;
}

Plugin load_plugin(const std::string& path, const plugrad_host* host) {
  std::vector<std::string> exports = exported_symbols(path);
  const std::string absolute = std::filesystem::absolute(path).string();
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Unloadable(path + ": the system's loader refused it: " + dlerror());
  void* symbol = dlsym(library, kEntry);
  if (!symbol)
    throw Unloadable(path + ": exports no " + kEntry + "; write PLUGRAD_EXPORT_BACKEND in one source of the plugin");
  Plugin plugin = first_call(reinterpret_cast<plugrad_backend_entry>(symbol), path, host);
  plugin.exports = std::move(exports);
  return plugin;
}

Plugin linked_plugin(plugrad_backend_entry entry, const std::string& source, const plugrad_host* host) {
  return first_call(entry, source, host);
}

}  // namespace plugrad::conformance
