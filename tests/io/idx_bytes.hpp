// Builds valid IDX files, for tests that damage them.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::test {

inline std::string idx_header(const std::vector<uint32_t>& extents, uint8_t type = 0x08) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift);
  }
  return bytes;
}

// Returns a file with the elements 0, 1, 2, ... modulo `modulus`.
inline std::string idx_bytes(const std::vector<uint32_t>& extents, unsigned modulus = 251) {
  uint64_t count = 1;
  for (const uint32_t extent : extents) count *= extent;
  std::string bytes = idx_header(extents);
  for (uint64_t i = 0; i < count; ++i) bytes += static_cast<char>(i % modulus);
  return bytes;
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
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

}  // namespace plugrad::test
