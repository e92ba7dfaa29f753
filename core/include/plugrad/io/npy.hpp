// NumPy's files: an array in a .npy file, or several arrays by name in a .npz file, a zip archive.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace plugrad::io {

// Reads the array of a .npy file (format 1.0, 2.0 or 3.0) to a device. Elements are bool, i8 .. i64, u8, f16, f32 or f64,
// of either byte order; arrays in Fortran's order become row-major. Throws Error (io_error) for a file that is missing,
// damaged, cut short or too long, and for elements of another type, with advice for them.
PLUGRAD_API Tensor read_npy(const std::string& path, Device device = default_device());
// Writes a file atomically (see file.hpp), in format 1.0. Throws Error (io_error), and Error (invalid) for bf16, which is
// missing in NumPy, and for an undefined tensor.
PLUGRAD_API void write_npy(const std::string& path, const Tensor& tensor);

// An open archive for reading single arrays. It keeps the file open, so that a replacement of the file meanwhile has no
// effect. Const methods may be called by several threads at once.
class PLUGRAD_API NpzFile {
 public:
  // Reads the archive's directory. Throws Error (io_error) for a missing file, and for an invalid zip or zip64 archive, with
  // repeated, overlapping or encrypted entries, or entries packed by a method other than deflate.
  explicit NpzFile(const std::string& path);
  ~NpzFile();
  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;

  // Returns the names of the arrays, without ".npy", in alphabetical order.
  std::vector<std::string> keys() const;
  // Reads one array to a device. Throws as read_npy does, Error (io_error) for a wrong checksum, and Error (invalid) for a
  // name missing in the archive.
  Tensor get(const std::string& name, Device device = default_device()) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// Reads all arrays of a .npz file. Throws as NpzFile does.
PLUGRAD_API std::map<std::string, Tensor> read_npz(const std::string& path, Device device = default_device());
// Writes a file atomically (see file.hpp); `compress` packs the arrays by deflate. Equal contents give equal files.
// Throws as write_npy does, and Error (invalid) for a name that is empty, longer than 65531 bytes, or not UTF-8.
PLUGRAD_API void write_npz(const std::string& path, const std::map<std::string, Tensor>& tensors, bool compress = false);

}  // namespace plugrad::io
