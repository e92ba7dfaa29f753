// safetensors: named tensors and a text map in one file; https://huggingface.co/docs/safetensors.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace plugrad::io {

using Metadata = std::map<std::string, std::string>;

// A file's entry for one tensor.
struct TensorEntry {
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0, end = 0;  // bytes, counted from the end of the header
};

struct SafetensorsHeader {
  std::map<std::string, TensorEntry> tensors;
  Metadata metadata;
  uint64_t data = 0;  // the offset of the tensors' bytes in the file
};

struct Safetensors {
  std::map<std::string, Tensor> tensors;
  Metadata metadata;
};

// Reads and checks only the header. Throws Error (io_error) for a missing file, and for violations of the format: the
// header's length, JSON in UTF-8 without repeated keys, the dtypes of dtypes.def, at most 8 extents, and tensors that fill
// the rest of the file without gap or overlap.
PLUGRAD_API SafetensorsHeader read_safetensors_header(const std::string& path);
// An open file for reading single tensors: opening it reads only the header. It keeps the file open, so that a replacement
// of the file meanwhile has no effect. Const methods may be called by several threads at once.
class PLUGRAD_API SafetensorsFile {
 public:
  // Throws as read_safetensors_header does.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  const SafetensorsHeader& header() const;
  // Returns the names in alphabetical order.
  std::vector<std::string> keys() const;
  // Returns a tensor's entry in the header. Throws Error (invalid) for a name missing in the file.
  const TensorEntry& info(const std::string& name) const;
  // Reads a tensor to a device. Throws as info does, and Error (io_error) for a bool that is neither 0 nor 1.
  Tensor get(const std::string& name, Device device = default_device()) const;
  // As get(), but where it can the tensor lies over pages of the file, which nothing reads before they are used: a large
  // tensor on a device with the host's memory, whose bytes are aligned to its dtype in the file. Processes share the pages,
  // and writes stay in this process. The file must stay as it is: if it is cut, the process ends by SIGBUS.
  Tensor map(const std::string& name, Device device = default_device()) const;
  // Reads the rows first .. last - 1 of a tensor along its first axis, and no other bytes. Throws as get does, and Error
  // (index_error) unless 0 <= first <= last <= the extent; a tensor of rank 0 has no rows: Error (invalid).
  Tensor rows(const std::string& name, int64_t first, int64_t last, Device device = default_device()) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// Reads the header, and the tensors to a device. Throws as read_safetensors_header does, and for a bool that is neither 0
// nor 1.
PLUGRAD_API Safetensors read_safetensors(const std::string& path, Device device = default_device());
// Writes a file atomically (see file.hpp); waits for the devices. Tensors are ordered by decreasing element size, so that
// all are aligned, and then by name: equal contents give equal files. Throws Error (io_error), and Error (invalid)
// for an undefined tensor, the name "__metadata__", or text that is not UTF-8.
PLUGRAD_API void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                                   const Metadata& metadata = {});

}  // namespace plugrad::io
