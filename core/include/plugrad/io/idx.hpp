// IDX, the format of MNIST and similar data sets, plain or compressed with gzip.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::io {

// Bytes of any rank from 1 to 8, row-major.
struct IdxArray {
  std::vector<int64_t> extents;
  std::vector<uint8_t> elements;
};

// Reads one file. Throws Error (io_error) for a file that is missing, cut short, damaged, longer than its header says, or
// not an array of unsigned bytes. Memory use grows with the file's contents, not with the size claimed in its header.
PLUGRAD_API IdxArray read_idx(const std::string& path);

// Images, each with a class.
struct LabelledImages {
  int64_t count = 0, rows = 0, columns = 0;
  std::vector<uint8_t> pixels;  // count * rows * columns
  std::vector<uint8_t> labels;  // count
};

// Reads a pair of files: images (n, rows, columns) and labels (n). Throws as read_idx does, and if ranks or counts do
// not match or there is no image.
PLUGRAD_API LabelledImages read_labelled_images(const std::string& images, const std::string& labels);

}  // namespace plugrad::io
