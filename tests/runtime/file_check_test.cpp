// Truncated plugins: loading one crashes the process, so the check must find all of them.
#include <tests/runtime/mutated.hpp>
#include <tests/runtime/prefix.hpp>

#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <process/shared_object.hpp>

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace plugrad::test {
namespace {
namespace fs = std::filesystem;

std::string damage_of(const fs::path& file) {
  FileIdentity ignored;
  return check_shared_object(file, ignored);
}

// The end of the last byte that the system loader maps.
size_t mapped_bytes(const std::string& file) {
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  size_t end = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + header.e_phoff + static_cast<size_t>(i) * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) end = std::max<size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

class Truncated : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "plugrad-cut-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    whole_ = read_file(variant("tiny"));
    ASSERT_GT(whole_.size(), 4096u);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path cut(size_t bytes) {
    const fs::path file = folder_ / "libplugrad-backend-cut.so";
    write_file(file, whole_.substr(0, bytes));
    return file;
  }
  fs::path folder_;
  std::string whole_;
};

TEST_F(Truncated, IsRefusedUnlessAllThatIsMappedIsThere) {
  const size_t mapped = mapped_bytes(whole_), step = std::max<size_t>(mapped / 600, 1),
               rest = std::max<size_t>((whole_.size() - mapped) / 50, 1);
  std::vector<size_t> cuts{mapped - 1, mapped};
  for (size_t bytes = 0; bytes < std::min<size_t>(whole_.size(), 1200); bytes += 7) cuts.push_back(bytes);
  for (size_t bytes = 0; bytes < mapped; bytes += step) cuts.push_back(bytes);
  for (size_t bytes = mapped; bytes < whole_.size(); bytes += rest) cuts.push_back(bytes);
  size_t refused = 0;
  for (const size_t bytes : cuts) {
    const std::string reason = damage_of(cut(bytes));
    EXPECT_EQ(reason.empty(), bytes >= mapped) << bytes << " of " << whole_.size() << ": " << reason;
    refused += !reason.empty();
  }
  EXPECT_GT(refused, 500u);
}

TEST_F(Truncated, IsAnErrorOfTheProgramThatLoadsIt) {
  const size_t mapped = mapped_bytes(whole_);
  for (size_t bytes = 0; bytes < mapped; bytes += mapped / 50) {
    const fs::path file = cut(bytes);
    ASSERT_FALSE(damage_of(file).empty()) << bytes;  // never load a file that passes
    try {
      load_plugin(file);
      ADD_FAILURE() << bytes << " bytes were loaded";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("found, then refused"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(load_plugin(variant("tiny")).stage, Stage::ready);
}

TEST_F(Truncated, ProgramHeadersThatLieAreRefused) {
  const auto refuses = [&](size_t at, uint64_t value, size_t size) {
    std::string bytes = whole_;
    std::memcpy(bytes.data() + at, &value, size);
    const fs::path file = folder_ / "libplugrad-backend-lie.so";
    write_file(file, bytes);
    return !damage_of(file).empty();
  };
  for (const uint64_t offset : {~uint64_t(0), ~uint64_t(0) - 55, uint64_t(1) << 63, static_cast<uint64_t>(whole_.size()),
                                static_cast<uint64_t>(whole_.size() - 1)})
    EXPECT_TRUE(refuses(offsetof(Elf64_Ehdr, e_phoff), offset, 8)) << offset;
  EXPECT_TRUE(refuses(offsetof(Elf64_Ehdr, e_phnum), 0xffff, 2));
  EXPECT_TRUE(refuses(offsetof(Elf64_Ehdr, e_phentsize), 1, 2));
  for (const size_t field : {offsetof(Elf64_Phdr, p_offset), offsetof(Elf64_Phdr, p_filesz)})
    for (const uint64_t value : {~uint64_t(0), ~uint64_t(0) - 4096, uint64_t(1) << 62})
      EXPECT_TRUE(refuses(sizeof(Elf64_Ehdr) + field, value, 8)) << field << ' ' << value;
}

// The check reads only inside the file, whatever its bytes are.
TEST_F(Truncated, DamagedFilesAreReadWithinTheirBounds) {
  std::mt19937_64 random(7);
  int refused = 0;
  const fs::path file = folder_ / "libplugrad-backend-damaged.so";
  for (int i = 0; i < 2000; ++i) {
    write_file(file, mutated(whole_, random));
    refused += !damage_of(file).empty();
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 1900);
}

}  // namespace
}  // namespace plugrad::test
