#include <tests/fuzz/target.hpp>

#include <plugrad/runtime/error.hpp>
#include <tests/io/scratch.hpp>

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace plugrad::test {
namespace {
std::string outcome;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

// Replaces the contents of the file.
void fill(int file, const uint8_t* bytes, size_t count) {
  if (ftruncate(file, 0) || pwrite(file, bytes, count, 0) != static_cast<ssize_t>(count)) stop("no memory for the input");
}
}  // namespace

void add_to_number(std::string& bytes, size_t at, size_t width, int64_t sum) {
  if (bytes.size() < at + width) return;
  uint64_t number = 0;
  std::memcpy(&number, &bytes[at], width);
  number += static_cast<uint64_t>(sum);
  std::memcpy(&bytes[at], &number, width);
}

int read_file_of(const uint8_t* bytes, size_t count, const std::function<void(const std::string& path)>& read) {
  static const int file = memfd_create("input", MFD_CLOEXEC);
  fill(file, bytes, count);
  outcome.clear();
  try {
    read("/proc/self/fd/" + std::to_string(file));
  } catch (const Error& error) {
    outcome = error.what();
    if (outcome.empty()) stop("an Error without a message");
  } catch (const std::exception& error) {
    stop(std::string("not an Error: ") + error.what());
  }
  return 0;
}

const std::string& last_outcome() { return outcome; }

std::string bytes_written_by(const std::function<void(const std::string& path)>& write) {
  const Scratch scratch;
  write(scratch.path("file"));
  return read_file(scratch.path("file"));
}

}  // namespace plugrad::test
