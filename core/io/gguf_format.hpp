// The header of a GGUF file.
#pragma once
#include <core/io/opened_file.hpp>
#include <plugrad/io/gguf.hpp>

#include <map>

namespace plugrad::io {

struct GgufHeader {
  uint32_t version = 0;
  std::map<std::string, GgufValue> metadata;
  std::map<std::string, GgufTensor> tensors;
  std::vector<std::string> names;  // of the tensors, in the order of the file
};

// Reads and checks the header. Throws Error (io_error) as GgufFile's constructor does.
GgufHeader read_gguf_header(const OpenedFile& file);

}  // namespace plugrad::io
