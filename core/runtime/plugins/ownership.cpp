#include <core/runtime/plugins/ownership.hpp>

#include <core/runtime/plugins/platform.hpp>

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

// If root is not mapped, as in some containers, the owner of / takes its place.
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

// Checks every component of a path as it is named, and follows links: whoever may exchange a component chooses the loaded
// file.
class Walk {
 public:
  std::string check(const fs::path& path) {
    if (path.is_absolute()) at_ = "/";
    if (path.is_absolute() && !is_above_core(at_))
      if (std::string why = check_one(at_); !why.empty()) return why;
    for (const fs::path& name : path.relative_path())
      if (std::string why = enter(name); !why.empty()) return why;
    return "";
  }

 private:
  std::string enter(const fs::path& name) {
    if (name.empty() || name == ".") return "";
    if (name == "..") return at_ = at_.parent_path(), "";
    const fs::path next = at_ / name;
    std::error_code error;
    if (!is_above_core(next))
      if (std::string why = check_one(next); !why.empty()) return why;
    if (!fs::is_symlink(fs::symlink_status(next, error))) return at_ = next, "";
    constexpr int kMostLinks = 40;
    if (++links_ > kMostLinks) return next.string() + ": " + std::strerror(ELOOP);
    const fs::path target = fs::read_symlink(next, error);
    return error ? next.string() + ": " + error.message() : check(target);
  }

  fs::path at_ = "/";
  int links_ = 0;
};
}  // namespace

std::string check_ownership(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return error ? error.message() : std::strerror(ENOENT);
  return Walk().check(path);
}

}  // namespace plugrad
