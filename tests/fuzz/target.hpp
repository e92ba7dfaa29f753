// What a fuzzer of a reader consists of. libFuzzer needs the entry point alone; our driver begins with the seeds.
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
// Mends what a change of the size made inconsistent, so that a reader gets beyond it. grown: the bytes that were added, less
// those that were removed.
void fuzz_repair(std::string& bytes, int64_t grown);

// Reads each tensor of an open file, and the first half of its rows.
template <class File> void read_tensors(const File& file, Device device) {
  for (const std::string& name : file.keys()) {
    const Tensor whole = file.get(name, device);
    if (whole.rank() > 1) file.rows(name, 0, whole.size(0) / 2, device);
  }
}

// Adds to a little-endian number of so many bytes inside an input; leaves an input that is too short as it is.
void add_to_number(std::string& bytes, size_t at, size_t width, int64_t sum);

// Calls read with the path of a file that has these bytes and lies in memory. Returns 0. Ends the process if it throws
// anything but Error.
int read_file_of(const uint8_t* bytes, size_t count, const std::function<void(const std::string& path)>& read);
// What the last call of read_file_of threw; empty if it threw nothing.
const std::string& last_outcome();
// The bytes of a file that `write` writes to the path that it gets.
std::string bytes_written_by(const std::function<void(const std::string& path)>& write);

}  // namespace plugrad::test
