#include <plugrad/io/idx.hpp>

#include <plugrad/sdk/abi.h>
#include <core/io/byte_source.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/tensor/shape.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

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

std::string hex(const std::array<uint8_t, 4>& magic) {
  char text[16];
  std::snprintf(text, sizeof text, "%02x %02x %02x %02x", magic[0], magic[1], magic[2], magic[3]);
  return text;
}

int read_rank(ByteSource& source) {
  std::array<uint8_t, 4> magic{};
  if (source.read(magic.data(), 4) != 4) source.fail("is cut short: it ends inside its header");
  const bool idx = magic[0] == 0 && magic[1] == 0;
  if (idx && type_name(magic[2])) {
    source.fail(std::string("holds ") + type_name(magic[2]) + ", expected unsigned bytes (type 08)");
  }
  if (!idx || magic[2] != kUnsignedByte || magic[3] == 0) {
    source.fail("is not an IDX file of unsigned bytes: it begins with " + hex(magic) + ", expected 00 00 08 and the rank");
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

}  // namespace

IdxArray read_idx(const std::string& path) {
  ByteSource source(path, Packing::gzip_or_plain, "expected an IDX file, plain or .gz");
  IdxArray array;
  uint64_t count = 0;
  array.extents = read_extents(source, count);
  constexpr uint64_t kStep = uint64_t{1} << 24;
  while (array.elements.size() < count) {
    const size_t before = array.elements.size();
    const size_t part = static_cast<size_t>(std::min(count - before, kStep));
    array.elements.resize(before + part);
    const size_t got = source.read(array.elements.data() + before, part);
    if (got < part) {
      source.fail("is cut short: its header promises " + std::to_string(count) + " elements " + shape_text(array.extents) +
                  ", but it has " + std::to_string(before + got));
    }
  }
  uint8_t beyond = 0;
  if (source.read(&beyond, 1) != 0) {
    source.fail("has bytes after the " + std::to_string(count) + " elements " + shape_text(array.extents) +
                " that its header promises");
  }
  return array;
}

LabelledImages read_labelled_images(const std::string& images, const std::string& labels) {
  IdxArray pixels = read_idx(images);
  IdxArray classes = read_idx(labels);
  const auto fail = [](const std::string& path, const std::string& what) {
    throw Error(Code::io_error, "[" + path + "] " + what);
  };
  if (pixels.extents.size() != 3) {
    fail(images, "holds an array of shape " + shape_text(pixels.extents) + ", expected images (n, rows, columns)");
  }
  if (classes.extents.size() != 1) {
    fail(labels, "holds an array of shape " + shape_text(classes.extents) + ", expected labels (n)");
  }
  if (pixels.extents[0] != classes.extents[0]) {
    fail(labels, "holds " + std::to_string(classes.extents[0]) + " labels, but " + images + " holds " +
                     std::to_string(pixels.extents[0]) + " images");
  }
  if (pixels.elements.empty()) fail(images, "holds no image: its shape is " + shape_text(pixels.extents));
  return {pixels.extents[0], pixels.extents[1], pixels.extents[2], std::move(pixels.elements), std::move(classes.elements)};
}

}  // namespace plugrad::io
