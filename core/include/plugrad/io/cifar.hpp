// CIFAR-10 and CIFAR-100: 60,000 colour images of 32 x 32 in ten or a hundred classes. Krizhevsky, 2009. The binary version.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::io {

struct CifarImages {
  int64_t count = 0;
  std::vector<uint8_t> pixels;         // count * 3 * 32 * 32: red, green and blue, each row-major
  std::vector<uint8_t> labels;         // the class of each image
  std::vector<uint8_t> coarse_labels;  // of CIFAR-100: the superclass of each image; else empty
};

enum class CifarKind { ten, hundred };

// Reads one file, plain or compressed with gzip. Throws Error (io_error) for a missing or empty file, for a file that is not
// a sequence of whole records, and for a label out of range.
PLUGRAD_API CifarImages read_cifar_file(const std::string& path, CifarKind kind);

struct Cifar {
  CifarImages train, test;
};

// Reads the files in a directory by their original names: data_batch_1.bin .. data_batch_5.bin and test_batch.bin for
// CIFAR-10, train.bin and test.bin for CIFAR-100. Throws as read_cifar_file does.
PLUGRAD_API Cifar read_cifar(const std::string& directory, CifarKind kind);

}  // namespace plugrad::io
