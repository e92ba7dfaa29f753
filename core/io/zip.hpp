// Zip archives, with zip64: stored or deflated members.
#pragma once
#include <core/io/opened_file.hpp>
#include <plugrad/io/file.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plugrad::io {

struct ZipMember {
  bool deflated = false;
  uint32_t checksum = 0;
  uint64_t packed = 0, size = 0;  // in bytes
  uint64_t offset = 0;            // of its local header
};

class ZipReader {
 public:
  // Reads the directory. Throws Error (io_error).
  explicit ZipReader(const std::string& path);
  const OpenedFile& file() const { return file_; }
  const std::map<std::string, ZipMember>& members() const { return members_; }
  // Returns the bytes of a member. Throws Error (io_error) where they differ from the directory's entry.
  std::vector<uint8_t> read(const std::string& name) const;

 private:
  [[noreturn]] void fail(const std::string& what) const { file_.fail("is not a valid zip archive: " + what); }
  struct Directory {
    uint64_t count, bytes, offset;
  };
  Directory find_directory() const;
  Directory find_wide_directory(uint64_t end) const;
  void read_directory(const Directory& directory);
  size_t read_member(const std::vector<uint8_t>& bytes, size_t at);
  void widen(const std::vector<uint8_t>& bytes, size_t at, size_t length, ZipMember& member) const;
  void check_places(uint64_t directory) const;
  std::vector<uint8_t> inflate(const std::string& name, const ZipMember& member, const std::vector<uint8_t>& packed) const;

  OpenedFile file_;
  std::map<std::string, ZipMember> members_;
};

class ZipWriter {
 public:
  ZipWriter(const std::string& path, bool compress) : file_(path), compress_(compress) {}
  void add(const std::string& name, const std::vector<uint8_t>& bytes);
  void commit();

 private:
  void write(const std::string& bytes);

  AtomicFile file_;
  bool compress_;
  uint64_t offset_ = 0;
  std::vector<std::pair<std::string, ZipMember>> members_;
};

}  // namespace plugrad::io
