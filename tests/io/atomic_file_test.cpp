#include <plugrad/io/file.hpp>

#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace plugrad::test {
namespace {

using Names = std::set<std::string>;

// Limits the size of files during its lifetime; a write beyond the limit fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST(AtomicFile, ReplacesTheOldFileOnlyAtCommit) {
  const Scratch scratch;
  const std::string path = scratch.write("a", "old");
  io::AtomicFile file(path);
  file.write("new");
  EXPECT_EQ(read_file(path), "old");
  file.commit();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(scratch.names(), Names{"a"});
}

TEST(AtomicFile, WithoutCommitNothingIsLeft) {
  const Scratch scratch;
  {
    io::AtomicFile file(scratch.path("a"));
    file.write("new");
    EXPECT_EQ(scratch.names().size(), 1u);
    EXPECT_FALSE(scratch.names().contains("a"));
  }
  EXPECT_EQ(scratch.names(), Names{});
}

TEST(AtomicFile, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const Scratch scratch;
  const std::string path = scratch.write("a", "old");
  {
    const FileSizeLimit limit(4096);
    const std::string message = io_error_of([&] { io::write_file(path, std::string(100000, 'x')); });
    expect_mentions(message, "[" + path + "] cannot be written: File too large; the previous file is unchanged");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(scratch.names(), Names{"a"});
}

TEST(AtomicFile, AFullDiskLeavesTheOldFileAndNothingElse) {
  const Scratch scratch;
  if (mount("none", scratch.folder().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "a small file system cannot be mounted here: " << std::strerror(errno);
  }
  const std::string path = scratch.write("a", "old");
  expect_mentions(io_error_of([&] { io::write_file(path, std::string(1000000, 'x')); }), "No space left on device");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(scratch.names(), Names{"a"});
  io::write_file(path, "fits");
  EXPECT_EQ(read_file(path), "fits");
  EXPECT_EQ(umount2(scratch.folder().c_str(), MNT_DETACH), 0);
}

TEST(AtomicFile, PlacesThatTakeNoFileAreNamed) {
  const Scratch scratch;
  expect_mentions(io_error_of([&] { io::write_file(scratch.path("no/such/a"), "x"); }), "No such file or directory");
  expect_mentions(io_error_of([&] { io::write_file(scratch.folder(), "x"); }), "is not a regular file");
  expect_mentions(io_error_of([&] { io::write_file("/dev/full", "x"); }), "is not a regular file");
  expect_mentions(io_error_of([&] { io::write_file("", "x"); }), "is not the name of a file");
  expect_mentions(io_error_of([&] { io::write_file(scratch.path("sub/"), "x"); }), "is not the name of a file");
  const std::string file = scratch.write("a", "old");
  expect_mentions(io_error_of([&] { io::write_file(file + "/b", "x"); }), "Not a directory");
  EXPECT_EQ(scratch.names(), Names{"a"});
}

TEST(AtomicFile, AFolderWithoutPermissionIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const Scratch scratch;
  std::filesystem::permissions(scratch.folder(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_mentions(io_error_of([&] { io::write_file(scratch.path("a"), "x"); }), "Permission denied");
  std::filesystem::permissions(scratch.folder(), std::filesystem::perms::owner_all);
}

TEST(AtomicFile, LinksAreFollowedAndPermissionsKept) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("real"));
  const std::string target = scratch.write("real/a", "old");
  ASSERT_EQ(chmod(target.c_str(), 0640), 0);
  std::filesystem::create_symlink(target, scratch.path("link"));
  io::write_file(scratch.path("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
  EXPECT_EQ(read_file(target), "new");
  EXPECT_EQ(static_cast<int>(std::filesystem::status(target).permissions()), 0640);
}

TEST(AtomicFile, ANewFileHasTheUsersDefaultPermissions) {
  const Scratch scratch;
  const mode_t before = umask(027);
  io::write_file(scratch.path("a"), "x");
  umask(before);
  EXPECT_EQ(static_cast<int>(std::filesystem::status(scratch.path("a")).permissions()), 0640);
}

TEST(AtomicFile, TwoWritersOfOnePathDoNotMix) {
  const Scratch scratch;
  io::AtomicFile first(scratch.path("a")), second(scratch.path("a"));
  first.write("first");
  second.write("second");
  second.commit();
  first.commit();
  EXPECT_EQ(read_file(scratch.path("a")), "first");
  EXPECT_EQ(scratch.names(), Names{"a"});
}

TEST(AtomicFile, LongNamesWork) {
  const Scratch scratch;
  const std::string name(250, 'n');
  io::write_file(scratch.path(name), "x");
  EXPECT_EQ(scratch.names(), Names{name});
}

}  // namespace
}  // namespace plugrad::test
