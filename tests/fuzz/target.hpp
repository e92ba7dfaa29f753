// The functions of a fuzz target. libFuzzer needs only the entry point; driver.cpp also begins with the seeds.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Reads these bytes in every way. Ends the process if a reader does anything but succeed or throw Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count);

namespace plugrad::test {

// Valid inputs.
std::vector<std::string> fuzz_seeds();
// Corrects the sizes inside an input after its size changed, so that a reader does not stop there. grown: the number of
// added bytes minus the number of removed bytes.
void fuzz_repair(std::string& bytes, int64_t grown);

// Reads each tensor of an open file, and the first half of its rows.
template <class File> void read_tensors(const File& file, Device device) {
  for (const std::string& name : file.keys()) {
    const Tensor whole = file.get(name, device);
    if (whole.rank() > 1) file.rows(name, 0, whole.size(0) / 2, device);
  }
}

// Adds `sum` to a little-endian number of `width` bytes inside an input; does not change an input that is too short.
void add_to_number(std::string& bytes, size_t at, size_t width, int64_t sum);

// Calls read with the path of a file in memory that has these bytes. Returns 0. Ends the process if read throws an exception
// other than Error.
int read_file_of(const uint8_t* bytes, size_t count, const std::function<void(const std::string& path)>& read);
// The message of the Error in the last call of read_file_of; empty if nothing was thrown.
const std::string& last_outcome();
// Calls `write` with a path, and returns the bytes of the file that it writes.
std::string bytes_written_by(const std::function<void(const std::string& path)>& write);

}  // namespace plugrad::test
