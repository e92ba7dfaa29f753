// GGUF, versions 2 and 3: named tensors, many of them quantised, and typed metadata in one file. The format of ggml and
// llama.cpp: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
#pragma once
#include <plugrad/ops/quantization.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace plugrad::io {

// A value of the metadata. Integers of the file are int64_t, but uint64_t where the file says u64; f32 and f64 are double.
// An array holds values of one type; arrays of arrays are lists of values.
struct GgufValue {
  using List = std::vector<GgufValue>;
  std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<bool>, std::vector<int64_t>, std::vector<uint64_t>,
               std::vector<double>, std::vector<std::string>, List>
      value;
};

struct GgufTensor {
  std::string type;               // as ggml names it: "F32", "Q4_K"
  Shape shape;                    // row-major: ggml's extents in reverse order
  uint64_t begin = 0, bytes = 0;  // in the file
  int64_t block = 1;              // elements of the last axis per block
  int64_t block_bytes = 1;        // the bytes of a block
};

// An open file for reading single tensors: opening it reads only the header. It keeps the file open, so that a replacement
// of the file meanwhile has no effect. Const methods may be called by several threads at once.
class PLUGRAD_API GgufFile {
 public:
  // Throws Error (io_error) for a missing file, and for violations of the format: magic and version, types of values, arrays
  // nested more than 4 deep, repeated keys or tensors, types of tensors unknown to ggml, over 8 extents, rows of incomplete
  // blocks, and tensors that overlap, are not aligned, or are placed beyond the file's end. Memory grows with the file's
  // contents, not with the sizes claimed in the file.
  explicit GgufFile(const std::string& path);
  ~GgufFile();
  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;

  uint32_t version() const;
  const std::map<std::string, GgufValue>& metadata() const;
  // Return an entry of the metadata. They throw Error (io_error) with the key if the entry is missing or has another type.
  const GgufValue& value(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double real(const std::string& key) const;  // of an integer, too
  const std::string& text(const std::string& key) const;
  const std::vector<std::string>& texts(const std::string& key) const;
  bool has(const std::string& key) const;

  // Returns the names of the tensors in the order of the file.
  const std::vector<std::string>& keys() const;
  // Returns a tensor's entry in the header. Throws Error (invalid) for a name missing in the file.
  const GgufTensor& info(const std::string& name) const;
  // Reads one tensor to a device. F32, F16, BF16, F64, I8, I16, I32 and I64 keep their dtype; Q4_0, Q4_1, Q5_0, Q5_1, Q8_0
  // and Q2_K to Q6_K become f32. Throws as info does, and Error (unsupported) for all other types.
  Tensor get(const std::string& name, Device device = default_device()) const;
  // Reads a matrix (n, k) of one of these quantised types as codes and scales, with get's elements exactly. Codes of 3 bits
  // are widened to 4, codes of 5 and 6 bits to 8. scales is f16, or f32 for types in _K. Throws as info does, and Error
  // (unsupported) for other types and ranks.
  Quantized quantized(const std::string& name, Device device = default_device()) const;
  // Reads the rows first .. last - 1 of a tensor along its first axis, and no other bytes. Throws as get does, and Error
  // (index_error) unless 0 <= first <= last <= the extent; a tensor of rank 0 has no rows: Error (invalid).
  Tensor rows(const std::string& name, int64_t first, int64_t last, Device device = default_device()) const;
  // Returns the bytes of a tensor as stored in the file: blocks, row by row. Throws as info does.
  std::vector<uint8_t> raw(const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace plugrad::io
