#include <core/runtime/ownership.hpp>

#include <core/runtime/platform.hpp>

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace plugrad {
namespace {
namespace fs = std::filesystem;

// Where root is not mapped, as in some containers, the owner of / is in its place.
const std::vector<uid_t>& trusted_owners() {
  static const std::vector<uid_t>& owners = *new std::vector<uid_t>([] {
    std::vector<uid_t> known{0, geteuid()};
    struct stat about;
    for (const std::string& each : {std::string("/"), platform::core_file()})
      if (stat(each.c_str(), &about) == 0) known.push_back(about.st_uid);
    return known;
  }());
  return owners;
}

std::string check_one(const fs::path& path) {
  struct stat about;
  if (lstat(path.c_str(), &about)) return path.string() + ": " + std::strerror(errno);
  const bool link = S_ISLNK(about.st_mode), sticky = S_ISDIR(about.st_mode) && (about.st_mode & S_ISVTX);
  if (std::ranges::find(trusted_owners(), about.st_uid) == trusted_owners().end())
    return path.string() + " belongs to user " + std::to_string(about.st_uid) +
           ", who is neither root, nor the user of this process, nor the owner of the core library: change its owner, "
           "or let the program load the plugin by its path";
  if (!link && (about.st_mode & S_IWOTH) && !sticky)
    return "everybody may write to " + path.string() +
           ": remove that permission (chmod o-w), or let the program load the plugin by its path";
  return "";
}

// Whoever controls a directory above the core library controls the core already.
bool is_above_core(const fs::path& directory) {
  static const fs::path& core = *new fs::path(platform::core_file());
  const auto [differs, rest] = std::mismatch(directory.begin(), directory.end(), core.begin(), core.end());
  return differs == directory.end();
}

// The file, then every directory above it.
std::string check_chain(fs::path path) {
  for (;; path = path.parent_path()) {
    if (is_above_core(path)) return "";  // and so are the rest
    if (std::string why = check_one(path); !why.empty()) return why;
    if (path == path.root_path()) return "";
  }
}
}  // namespace

std::string check_ownership(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  if (error) return error.message();
  const fs::path named = fs::canonical(fs::path(path).parent_path(), error) / fs::path(path).filename();
  if (error) return error.message();
  std::string why = check_chain(named);  // where it was found, which may be a link
  return why.empty() && named != target ? check_chain(target) : why;
}

}  // namespace plugrad
