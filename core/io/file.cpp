#include <plugrad/io/file.hpp>

#include <plugrad/runtime/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace plugrad::io {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(Code::io_error, "[" + path + "] " + what);
}

std::string resolve_links(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  return real ? std::string(real.get()) : path;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Process and count make the name unique among current writers, and O_EXCL excludes the rest. The name begins with a dot, so
// that listings and patterns such as *.safetensors skip the leftover file of a killed process.
std::string temporary_name(const std::string& path, int attempt) {
  static std::atomic<uint64_t> count{0};
  const size_t slash = path.rfind('/');
  const size_t start = slash == std::string::npos ? 0 : slash + 1;
  const std::string mark = std::to_string(getpid()) + "-" + std::to_string(count++) + "-" + std::to_string(attempt);
  return path.substr(0, start) + "." + path.substr(start, NAME_MAX / 2) + "." + mark + ".part";
}

// Some network and FUSE file systems do not support fsync; nothing more can be done there.
bool sync_failed(int descriptor) { return fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP; }

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : name_(path), path_(resolve_links(path)) {
  if (path.empty() || path.back() == '/') refuse(path, "is not the name of a file");
  struct stat old{};
  const bool exists = stat(path_.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) refuse(name_, "cannot be written: it exists and is not a regular file");
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts && descriptor_ < 0; ++attempt) {
    temporary_ = temporary_name(path_, attempt);
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail("cannot be written: a new file in " + folder_of(path_) + " was refused", error);
  }
  // The owner may differ from the old file's. If the mode cannot be set, only the owner may read the file: this is safe.
  if (exists && fchmod(descriptor_, old.st_mode & 07777) != 0) fchmod(descriptor_, 0600);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::fail(const std::string& what, int error) {
  refuse(name_, what + ": " + std::strerror(error) + "; the previous file is unchanged");
}

void AtomicFile::write(const void* bytes, size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor_, next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written", errno);
    next += written;
    count -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (sync_failed(descriptor_)) fail("cannot be written", errno);
  // Network file systems report a full disk here.
  if (close(std::exchange(descriptor_, -1)) != 0) fail("cannot be written", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be replaced", errno);
  temporary_.clear();
  const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder with permission to write but not to read: the rename is done, but it cannot be synced.
  if (folder < 0) return;
  const bool failed = sync_failed(folder);
  const int error = errno;
  close(folder);
  if (failed) {
    refuse(name_, std::string("is written, but may be lost if the machine stops now: its folder cannot be synced: ") +
                      std::strerror(error));
  }
}

void write_file(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace plugrad::io
