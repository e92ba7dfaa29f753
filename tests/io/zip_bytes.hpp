// Builds zip archives and .npy files, valid and damaged, for tests.
#pragma once
#include <tests/io/gguf_bytes.hpp>

#include <zlib.h>

#include <string>
#include <vector>

namespace plugrad::test {

inline std::string raw_deflate(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// A member of an archive. A test can falsify its sizes, offset and checksum.
struct ZipRow {
  std::string name = {}, bytes = {};
  uint16_t method = 0, flags = 0;
  int64_t more_size = 0, more_packed = 0, more_offset = 0;  // added to the numbers in the headers
  uint32_t checksum_mask = 0;
};

// With `wide` all numbers are in fields of zip64.
inline std::string zip_file(const std::vector<ZipRow>& rows, bool wide = false, const std::string& comment = "") {
  const auto number = [&](uint64_t value) { return little(wide ? UINT32_MAX : static_cast<uint32_t>(value)); };
  std::string file, directory;
  for (const ZipRow& row : rows) {
    const std::string packed = row.method == 8 ? raw_deflate(row.bytes) : row.bytes;
    const uint64_t size = row.bytes.size() + static_cast<uint64_t>(row.more_size);
    const uint64_t stored = packed.size() + static_cast<uint64_t>(row.more_packed);
    const uint64_t offset = file.size() + static_cast<uint64_t>(row.more_offset);
    const auto* data = reinterpret_cast<const Bytef*>(row.bytes.data());
    const uint32_t sum = static_cast<uint32_t>(crc32(0, data, static_cast<uInt>(row.bytes.size()))) ^ row.checksum_mask;
    const std::string start = little(uint16_t{45}) + little(row.flags) + little(row.method) + little(0u) + little(sum);
    const std::string name = little(static_cast<uint16_t>(row.name.size()));
    const std::string extra =
        wide ? little(uint16_t{1}) + little(uint16_t{24}) + little(size) + little(stored) + little(offset) : "";
    directory += little(0x02014b50u) + little(uint16_t{45}) + start + number(stored) + number(size) + name +
                 little(static_cast<uint16_t>(extra.size())) + little(uint16_t{0}) + little(0u) + little(0u) +
                 number(offset) + row.name + extra;
    file += little(0x04034b50u) + start + number(stored) + number(size) + name + little(uint16_t{0}) + row.name + packed;
  }
  const uint64_t begin = file.size(), end = begin + directory.size();
  const uint16_t count = wide ? uint16_t{0xffff} : static_cast<uint16_t>(rows.size());
  file += directory;
  if (wide) {
    file += little(0x06064b50u) + little(uint64_t{44}) + little(0u) + little(uint64_t{0}) + little(uint64_t{rows.size()}) +
            little(uint64_t{rows.size()}) + little(uint64_t{directory.size()}) + little(begin);
    file += little(0x07064b50u) + little(0u) + little(end) + little(1u);
  }
  return file + little(0x06054b50u) + little(0u) + little(count) + little(count) + number(directory.size()) + number(begin) +
         little(static_cast<uint16_t>(comment.size())) + comment;
}

inline std::string npy_file(const std::string& header, const std::string& data, int version = 1) {
  const std::string length =
      version == 1 ? little(static_cast<uint16_t>(header.size() + 1)) : little(static_cast<uint32_t>(header.size() + 1));
  return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' + length + header + "\n" + data;
}
inline std::string npy_array(const std::string& descr, const std::string& shape, const std::string& data,
                             bool fortran = false) {
  return npy_file(
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }", data);
}

}  // namespace plugrad::test
