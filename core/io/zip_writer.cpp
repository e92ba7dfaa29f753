#include <core/io/zip.hpp>

#include <plugrad/runtime/error.hpp>

#include <zlib.h>

#include <algorithm>

namespace plugrad::io {
namespace {

constexpr uint64_t kFar = 0xffffffff;  // from here on numbers are in fields of zip64

std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string narrow(uint64_t value) { return number(std::min(value, kFar), 4); }

bool is_wide(const ZipMember& member) { return member.size >= kFar || member.packed >= kFar || member.offset >= kFar; }

// Returns the common part of local headers and the directory: version, flags (names are UTF-8), method, the same time as
// NumPy (so that equal contents give equal files), checksum and sizes.
std::string description(const ZipMember& member) {
  const uint64_t packed = is_wide(member) ? kFar : member.packed, size = is_wide(member) ? kFar : member.size;
  return number(is_wide(member) ? 45 : 20, 2) + number(0x800, 2) + number(member.deflated ? 8 : 0, 2) + number(0, 2) +
         number(0x21, 2) + number(member.checksum, 4) + narrow(packed) + narrow(size);
}

std::vector<uint8_t> deflated(const std::vector<uint8_t>& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(Code::out_of_memory, "[deflate] there is no memory for zlib");
  }
  constexpr size_t kStep = size_t{1} << 24;
  std::vector<uint8_t> packed;
  size_t used = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const size_t before = packed.size(), in = std::min(kStep, bytes.size() - used);
    packed.resize(before + in + 1024);
    stream.next_in = const_cast<uint8_t*>(bytes.data()) + used;
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = packed.data() + before;
    stream.avail_out = static_cast<uInt>(packed.size() - before);
    status = deflate(&stream, used + in == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    used += in - stream.avail_in;
    packed.resize(packed.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

}  // namespace

void ZipWriter::write(const std::string& bytes) {
  file_.write(bytes);
  offset_ += bytes.size();
}

void ZipWriter::add(const std::string& name, const std::vector<uint8_t>& bytes) {
  const std::vector<uint8_t> packed = compress_ ? deflated(bytes) : std::vector<uint8_t>();
  const std::vector<uint8_t>& stored = compress_ ? packed : bytes;
  const ZipMember member = {compress_, static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size())), stored.size(),
                            bytes.size(), offset_};
  const std::string extra =
      is_wide(member) ? number(1, 2) + number(16, 2) + number(member.size, 8) + number(member.packed, 8) : "";
  write(number(0x04034b50, 4) + description(member) + number(name.size(), 2) + number(extra.size(), 2) + name + extra);
  file_.write(stored.data(), stored.size());
  offset_ += stored.size();
  members_.emplace_back(name, member);
}

void ZipWriter::commit() {
  const uint64_t start = offset_;
  for (const auto& [name, member] : members_) {
    const bool wide = is_wide(member);
    const std::string extra =
        wide ? number(1, 2) + number(24, 2) + number(member.size, 8) + number(member.packed, 8) + number(member.offset, 8)
             : "";
    write(number(0x02014b50, 4) + number(wide ? 45 : 20, 2) + description(member) + number(name.size(), 2) +
          number(extra.size(), 2) + number(0, 2) + number(0, 2) + number(0, 2) + number(0, 4) +
          narrow(wide ? kFar : member.offset) + name + extra);
  }
  const uint64_t bytes = offset_ - start, count = members_.size(), end = offset_;
  const bool wide = start >= kFar || bytes >= kFar || count >= 0xffff;
  if (wide) {
    write(number(0x06064b50, 4) + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 4) + number(0, 4) +
          number(count, 8) + number(count, 8) + number(bytes, 8) + number(start, 8));
    write(number(0x07064b50, 4) + number(0, 4) + number(end, 8) + number(1, 4));
  }
  const std::string members = number(std::min<uint64_t>(count, 0xffff), 2);
  write(number(0x06054b50, 4) + number(0, 4) + members + members + narrow(bytes) + narrow(wide ? kFar : start) +
        number(0, 2));
  file_.commit();
}

}  // namespace plugrad::io
