#include <core/io/zip.hpp>

#include <core/io/quote.hpp>

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace plugrad::io {
namespace {

constexpr uint32_t kEnd = 0x06054b50, kWideEnd = 0x06064b50, kWideLocator = 0x07064b50, kMember = 0x02014b50,
                   kLocal = 0x04034b50;
constexpr size_t kEndBytes = 22, kWideEndBytes = 56, kLocatorBytes = 20, kMemberBytes = 46, kLocalBytes = 30;
constexpr uint32_t kWide = 0xffffffff;  // a sign of a number in a zip64 field

template <class T> T load(const std::vector<uint8_t>& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<uint8_t> read_bytes(const OpenedFile& file, uint64_t offset, size_t count) {
  std::vector<uint8_t> bytes(count);
  file.read(offset, bytes.data(), count);
  return bytes;
}

// A stream of raw deflate.
struct Inflate {
  z_stream stream{};
  Inflate() { ready = inflateInit2(&stream, -MAX_WBITS) == Z_OK; }
  ~Inflate() { inflateEnd(&stream); }
  bool ready = false;
};

}  // namespace

ZipReader::ZipReader(const std::string& path) : file_(path) { read_directory(find_directory()); }

// Finds the record at the end. Only a comment may follow it.
ZipReader::Directory ZipReader::find_directory() const {
  constexpr uint64_t kLongest = kEndBytes + 65535;
  const uint64_t count = std::min(file_.size(), kLongest), start = file_.size() - count;
  const std::vector<uint8_t> tail = read_bytes(file_, start, static_cast<size_t>(count));
  for (size_t back = kEndBytes; back <= tail.size(); ++back) {
    const size_t at = tail.size() - back;
    if (load<uint32_t>(tail, at) != kEnd || load<uint16_t>(tail, at + 20) != back - kEndBytes) continue;
    const uint16_t disk = load<uint16_t>(tail, at + 4), members = load<uint16_t>(tail, at + 10);
    const uint32_t bytes = load<uint32_t>(tail, at + 12), offset = load<uint32_t>(tail, at + 16);
    if (members == 0xffff || bytes == kWide || offset == kWide) return find_wide_directory(start + at);
    if (disk != 0 || bytes > start + at || offset > start + at - bytes) fail("its directory lies outside the file");
    return {members, bytes, offset};
  }
  fail("it has no directory at its end; it may be cut short");
}

ZipReader::Directory ZipReader::find_wide_directory(uint64_t end) const {
  if (end < kLocatorBytes + kWideEndBytes) fail("its zip64 directory is missing");
  const std::vector<uint8_t> locator = read_bytes(file_, end - kLocatorBytes, kLocatorBytes);
  const uint64_t at = load<uint64_t>(locator, 8);
  if (load<uint32_t>(locator, 0) != kWideLocator || at > end - kLocatorBytes - kWideEndBytes)
    fail("its zip64 directory is missing");
  const std::vector<uint8_t> record = read_bytes(file_, at, kWideEndBytes);
  const uint64_t count = load<uint64_t>(record, 32), bytes = load<uint64_t>(record, 40), offset = load<uint64_t>(record, 48);
  if (load<uint32_t>(record, 0) != kWideEnd || bytes > at || offset > at - bytes)
    fail("its zip64 directory lies outside the file");
  return {count, bytes, offset};
}

void ZipReader::read_directory(const Directory& directory) {
  if (directory.count > directory.bytes / kMemberBytes) {
    fail("it claims " + std::to_string(directory.count) + " members, for which its directory of " +
         std::to_string(directory.bytes) + " bytes is too short");
  }
  const std::vector<uint8_t> bytes = read_bytes(file_, directory.offset, static_cast<size_t>(directory.bytes));
  size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) at = read_member(bytes, at);
  check_places(directory.offset);
}

// Returns the start of the next member's record.
size_t ZipReader::read_member(const std::vector<uint8_t>& bytes, size_t at) {
  if (bytes.size() - at < kMemberBytes || load<uint32_t>(bytes, at) != kMember) fail("its directory is damaged");
  const size_t name_bytes = load<uint16_t>(bytes, at + 28), extra = load<uint16_t>(bytes, at + 30);
  const size_t next = at + kMemberBytes + name_bytes + extra + load<uint16_t>(bytes, at + 32);
  if (next > bytes.size()) fail("its directory is damaged");
  const std::string name(reinterpret_cast<const char*>(bytes.data()) + at + kMemberBytes, name_bytes);
  const uint16_t flags = load<uint16_t>(bytes, at + 8), method = load<uint16_t>(bytes, at + 10);
  ZipMember member = {method == 8, load<uint32_t>(bytes, at + 16), load<uint32_t>(bytes, at + 20),
                      load<uint32_t>(bytes, at + 24), load<uint32_t>(bytes, at + 42)};
  widen(bytes, at + kMemberBytes + name_bytes, extra, member);
  if (flags & 1) fail("its member " + quote(name) + " is encrypted; save it without a password");
  if (method != 0 && method != 8) {
    fail("its member " + quote(name) + " is packed by method " + std::to_string(method) + "; save it stored or deflated");
  }
  if (!member.deflated && member.packed != member.size) fail("its member " + quote(name) + " is stored, but has two sizes");
  if (!members_.emplace(name, member).second) fail("it has the member " + quote(name) + " twice");
  return next;
}

// Takes numbers too large for 32 bits from the field of zip64. They are in the field in this order.
void ZipReader::widen(const std::vector<uint8_t>& bytes, size_t at, size_t length, ZipMember& member) const {
  const size_t end = at + length;
  while (end - at >= 4) {
    const uint16_t id = load<uint16_t>(bytes, at);
    const size_t field_end = at + 4 + load<uint16_t>(bytes, at + 2);
    if (field_end > end) break;
    size_t next = at + 4;
    for (uint64_t* number : {&member.size, &member.packed, &member.offset}) {
      if (id != 1 || *number != kWide) continue;
      if (field_end - next < 8) fail("its directory is damaged");
      *number = load<uint64_t>(bytes, next);
      next += 8;
    }
    at = field_end;
  }
}

// Members with shared bytes could unpack to far more than the file's size.
void ZipReader::check_places(uint64_t directory) const {
  std::vector<std::pair<uint64_t, const std::pair<const std::string, ZipMember>*>> order;
  for (const auto& member : members_) order.emplace_back(member.second.offset, &member);
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& [name, member] = *order[i].second;
    const uint64_t end = i + 1 < order.size() ? order[i + 1].first : directory;
    if (member.offset > end || end - member.offset < kLocalBytes || member.packed > end - member.offset - kLocalBytes) {
      fail("its member " + quote(name) + " overlaps what follows it, or lies outside the file");
    }
    constexpr uint64_t kMostRatio = 1032;  // of deflate
    if (member.deflated && member.size / kMostRatio > member.packed) {
      fail("its member " + quote(name) + " claims " + std::to_string(member.size) + " bytes, more than its " +
           std::to_string(member.packed) + " packed bytes can hold");
    }
  }
}

std::vector<uint8_t> ZipReader::read(const std::string& name) const {
  const ZipMember& member = members_.at(name);
  const std::vector<uint8_t> local = read_bytes(file_, member.offset, kLocalBytes);
  const uint64_t start = member.offset + kLocalBytes + load<uint16_t>(local, 26) + load<uint16_t>(local, 28);
  if (load<uint32_t>(local, 0) != kLocal || start > file_.size() || member.packed > file_.size() - start) {
    fail("its member " + quote(name) + " is damaged");
  }
  std::vector<uint8_t> bytes = read_bytes(file_, start, static_cast<size_t>(member.packed));
  if (member.deflated) bytes = inflate(name, member, bytes);
  const uLong checksum = crc32_z(0, bytes.data(), bytes.size());
  if (checksum != member.checksum) fail("its member " + quote(name) + " is damaged: its checksum is wrong");
  return bytes;
}

std::vector<uint8_t> ZipReader::inflate(const std::string& name, const ZipMember& member,
                                        const std::vector<uint8_t>& packed) const {
  constexpr size_t kStep = size_t{1} << 24;
  const size_t size = static_cast<size_t>(member.size);
  Inflate state;
  z_stream& stream = state.stream;
  std::vector<uint8_t> bytes;
  size_t used = 0;
  int status = state.ready ? Z_OK : Z_MEM_ERROR;
  // One byte more than promised reveals too long a member.
  while (status == Z_OK && bytes.size() <= size) {
    const size_t before = bytes.size(), in = std::min(kStep, packed.size() - used);
    bytes.resize(before + std::min(kStep, size + 1 - before));
    stream.next_in = const_cast<uint8_t*>(packed.data()) + used;
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = bytes.data() + before;
    stream.avail_out = static_cast<uInt>(bytes.size() - before);
    status = ::inflate(&stream, Z_NO_FLUSH);
    used += in - stream.avail_in;
    bytes.resize(bytes.size() - stream.avail_out);
  }
  if (status != Z_STREAM_END || bytes.size() != size || used != packed.size()) {
    fail("its member " + quote(name) + " is damaged: it does not unpack to the " + std::to_string(size) +
         " bytes that it claims");
  }
  return bytes;
}

}  // namespace plugrad::io
