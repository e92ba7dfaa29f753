#include <core/runtime/plugins/verdicts.hpp>

#include <core/runtime/fnv.hpp>
#include <core/runtime/plugins/platform.hpp>

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace plugrad::verdicts {
namespace {
namespace fs = std::filesystem;
constexpr const char* kFirstLine = "plugrad verdict 2";
constexpr const char* kExtension = ".verdict";
constexpr size_t kMostBytes = 16 << 10, kMostFiles = 256;

// Empty without such a directory, as in a program with raised privileges.
fs::path directory() {
  for (const auto& [variable, below] : {std::pair("XDG_CACHE_HOME", "plugrad"), std::pair("HOME", ".cache/plugrad")})
    if (const char* base = platform::environment(variable); base && *base == '/') return fs::path(base) / below;
  return {};
}

// A file for each path; two paths with the same hash share a file, and take turns.
fs::path file_of(const std::string& path) {
  Fnv hash;
  hash.add(path.data(), path.size());
  char name[17];
  std::snprintf(name, sizeof name, "%016lx", hash.value());
  return directory() / (std::string(name) + kExtension);
}

// Only the user's own file counts.
bool is_ours(const fs::path& file) {
  struct stat about;
  return lstat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
         !(about.st_mode & (S_IWGRP | S_IWOTH)) && static_cast<uint64_t>(about.st_size) <= kMostBytes;
}

std::string text_of(const Verdict& v) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << kFirstLine << '\n'
       << v.path << '\n'
       << v.file.device << ' ' << v.file.inode << ' ' << v.file.bytes << ' ' << v.file.modified << ' ' << v.file.changed
       << '\n'
       << v.loads << ' ' << v.counts;
  for (const auto& [device, opened] : v.opens)
    if (opened) text << ' ' << device;
  text << '\n' << v.fault << '\n';
  return text.str();
}

// Returns an empty verdict if the file is not ours, or damaged.
Verdict parse(const fs::path& file) {
  if (!is_ours(file)) return {};
  std::ifstream in(file, std::ios::binary);
  in.imbue(std::locale::classic());
  Verdict v;
  std::string first, end;
  std::getline(in, first);
  std::getline(in, v.path);
  in >> v.file.device >> v.file.inode >> v.file.bytes >> v.file.modified >> v.file.changed >> v.loads >> v.counts;
  std::getline(in, end);
  std::istringstream devices(end);
  devices.imbue(std::locale::classic());
  for (uint32_t device = 0; devices >> device;) v.opens[device] = true;
  std::getline(in, v.fault);
  return in && first == kFirstLine && devices.eof() ? v : Verdict{};
}

void replace(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  const fs::path part = file.string() + "." + std::to_string(platform::process());
  {
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    out << text;
    fs::permissions(part, fs::perms::owner_read | fs::perms::owner_write);
    if (!out.flush()) {
      fs::remove(part);
      return;
    }
  }
  fs::rename(part, file);
}
// Forgets missing plugins, once verdicts are many: builds in temporary directories would leave their verdicts for ever.
void prune() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& each : fs::directory_iterator(directory())) files.push_back(each.path());
  if (files.size() <= kMostFiles) return;
  for (const fs::path& file : files)
    if (file.extension() == kExtension && !fs::exists(parse(file).path)) fs::remove(file);
}
}  // namespace

Verdict read(const std::string& path, const FileIdentity& identity) {
  Verdict known = directory().empty() ? Verdict{} : parse(file_of(path));
  if (known.path == path && known.file == identity) return known;
  return {path, identity, false, false, {}, ""};
}

void write(const Verdict& verdict) noexcept {
  try {
    const std::string text = text_of(verdict);
    const bool one_line = verdict.path.find('\n') == std::string::npos && verdict.fault.find('\n') == std::string::npos;
    if (directory().empty() || !one_line || text.size() > kMostBytes) return;
    replace(file_of(verdict.path), text);
    prune();
  } catch (const std::exception&) {
  }
}

std::vector<Verdict> faults() {
  std::vector<Verdict> found;
  std::error_code none;
  for (fs::directory_iterator each(directory(), none), end; !none && each != end; each.increment(none))
    if (each->path().extension() == kExtension)
      if (Verdict v = parse(each->path()); !v.fault.empty()) found.push_back(std::move(v));
  std::ranges::sort(found, {}, &Verdict::path);
  return found;
}

bool forget(const std::string& path) {
  const bool had = !directory().empty() && !parse(file_of(path)).fault.empty();
  std::error_code none;
  return had && fs::remove(file_of(path), none);
}

}  // namespace plugrad::verdicts
