#include <core/io/opened_file.hpp>

#include <plugrad/runtime/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace plugrad::io {

OpenedFile::OpenedFile(const std::string& path, const std::string& hint) : path_(path) {
  // Without O_NONBLOCK, open would block forever on a FIFO.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(std::string("cannot be opened: ") + std::strerror(errno) + (hint.empty() ? "" : "; " + hint));
  struct stat status{};
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor_);
    fail("is not a regular file");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

OpenedFile::~OpenedFile() { close(descriptor_); }

void OpenedFile::fail(const std::string& what) const { throw Error(Code::io_error, "[" + path_ + "] " + what); }

size_t OpenedFile::read_some(uint64_t offset, void* bytes, size_t count) const {
  char* const out = static_cast<char*>(bytes);
  size_t done = 0;
  while (done < count) {
    const ssize_t got = pread(descriptor_, out + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void OpenedFile::read(uint64_t offset, void* bytes, size_t count) const {
  if (read_some(offset, bytes, count) != count) fail("was cut short while it was read");
}

void* OpenedFile::map(uint64_t offset, size_t count) const {
  struct stat status{};
  if (fstat(descriptor_, &status) != 0 || static_cast<uint64_t>(status.st_size) < offset + count)
    fail("was cut short while it was read");
  void* const address =
      mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor_, static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace plugrad::io
