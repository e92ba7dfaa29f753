#include <plugrad/io/idx.hpp>

#include <plugrad/sdk/abi.h>
#include <core/io/byte_source.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/tensor/shape.hpp>

#include <algorithm>
#include <array>

namespace plugrad::io {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;

const char* type_name(uint8_t type) {
  switch (type) {
    case 0x09: return "int8";
    case 0x0b: return "int16";
    case 0x0c: return "int32";
    case 0x0d: return "float32";
    case 0x0e: return "float64";
    default: return nullptr;
  }
}

int read_rank(ByteSource& source) {
  std::array<uint8_t, 4> magic{};
  if (source.read(magic.data(), 4) != 4) source.fail("is cut short: it ends inside its header");
  const bool idx = magic[0] == 0 && magic[1] == 0;
  if (idx && type_name(magic[2])) {
    source.fail(std::string("holds ") + type_name(magic[2]) + ", expected unsigned bytes (type 08)");
  }
  if (!idx || magic[2] != kUnsignedByte || magic[3] == 0) {
    source.fail("is not an IDX file of unsigned bytes: it does not begin with 00 00 08 and the rank");
  }
  if (magic[3] > PLUGRAD_MAX_RANK) source.fail("has " + std::to_string(magic[3]) + " dimensions; at most 8 are supported");
  return magic[3];
}

std::vector<int64_t> read_extents(ByteSource& source, uint64_t& count) {
  std::vector<int64_t> extents(static_cast<size_t>(read_rank(source)));
  count = 1;
  bool overflow = false;
  for (int64_t& extent : extents) {
    std::array<uint8_t, 4> bytes{};
    if (source.read(bytes.data(), 4) != 4) source.fail("is cut short: it ends inside its header");
    extent = int64_t{bytes[0]} << 24 | int64_t{bytes[1]} << 16 | int64_t{bytes[2]} << 8 | int64_t{bytes[3]};
    overflow |= __builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count);
  }
  if (overflow) source.fail("claims more than 2^64 elements");
  return extents;
}

std::string shape_text(const std::vector<int64_t>& extents) { return Shape(extents).text(); }

// A file after reading its header.
class IdxFile {
 public:
  explicit IdxFile(const std::string& path)
      : source_(path, Packing::gzip_or_plain, "expected an IDX file, plain or .gz"),
        extents_(read_extents(source_, count_)) {}
  const std::vector<int64_t>& extents() const { return extents_; }
  std::vector<uint8_t> elements();
  [[noreturn]] void fail(const std::string& what) const { source_.fail(what); }

 private:
  uint64_t count_ = 0;
  ByteSource source_;
  std::vector<int64_t> extents_;
};

std::vector<uint8_t> IdxFile::elements() {
  constexpr uint64_t kStep = uint64_t{1} << 24;
  std::vector<uint8_t> all;
  while (all.size() < count_) {
    const size_t before = all.size();
    const size_t part = static_cast<size_t>(std::min(count_ - before, kStep));
    all.resize(before + part);
    const size_t got = source_.read(all.data() + before, part);
    if (got < part) {
      fail("is cut short: its header promises " + std::to_string(count_) + " elements " + shape_text(extents_) +
           ", but it has " + std::to_string(before + got));
    }
  }
  uint8_t beyond = 0;
  if (source_.read(&beyond, 1) != 0) {
    fail("has bytes after the " + std::to_string(count_) + " elements " + shape_text(extents_) +
         " that its header promises");
  }
  return all;
}

}  // namespace

IdxArray read_idx(const std::string& path) {
  IdxFile file(path);
  return {file.extents(), file.elements()};
}

// A few bytes may unpack to gigabytes, so both headers are compared first, and the labels are read before the images.
LabelledImages read_labelled_images(const std::string& images, const std::string& labels) {
  IdxFile pixels(images), classes(labels);
  const std::vector<int64_t>& shape = pixels.extents();
  if (shape.size() != 3)
    pixels.fail("holds an array of shape " + shape_text(shape) + ", expected images (n, rows, columns)");
  if (classes.extents().size() != 1)
    classes.fail("holds an array of shape " + shape_text(classes.extents()) + ", expected labels (n)");
  if (shape[0] != classes.extents()[0]) {
    classes.fail("holds " + std::to_string(classes.extents()[0]) + " labels, but " + images + " holds " +
                 std::to_string(shape[0]) + " images");
  }
  if (std::ranges::count(shape, 0)) pixels.fail("holds no image: its shape is " + shape_text(shape));
  std::vector<uint8_t> all_labels = classes.elements();
  return {shape[0], shape[1], shape[2], pixels.elements(), std::move(all_labels)};
}

}  // namespace plugrad::io
