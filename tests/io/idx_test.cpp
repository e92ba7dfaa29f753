#include <plugrad/io/idx.hpp>

#include <tests/io/idx_bytes.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace plugrad::test {
namespace {

std::string flipped(std::string bytes, size_t at) {
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 0x55);
  return bytes;
}

TEST(Idx, PlainAndPackedFilesReadAlike) {
  const Scratch scratch;
  const std::string bytes = idx_bytes({30, 28, 28});
  const std::string both = gzip(bytes.substr(0, 100)) + gzip(bytes.substr(100));
  for (const auto& path : {scratch.write("a", bytes), scratch.write("a.gz", gzip(bytes)), scratch.write("b.gz", both)}) {
    const io::IdxArray array = io::read_idx(path);
    EXPECT_EQ(array.extents, (std::vector<int64_t>{30, 28, 28}));
    EXPECT_EQ(std::string(array.elements.begin(), array.elements.end()), bytes.substr(16)) << path;
  }
}

// An array that is larger than the reader's buffers.
TEST(Idx, LongFilesReadWhole) {
  const Scratch scratch;
  const std::string bytes = idx_bytes({3000, 80, 80});
  for (const auto& path : {scratch.write("a", bytes), scratch.write("a.gz", gzip(bytes))}) {
    const io::IdxArray array = io::read_idx(path);
    EXPECT_EQ(std::string(array.elements.begin(), array.elements.end()), bytes.substr(16)) << path;
  }
}

TEST(Idx, ZeroExtentsAreAnEmptyArray) {
  const Scratch scratch;
  EXPECT_TRUE(io::read_idx(scratch.write("a", idx_bytes({0, 5}))).elements.empty());
}

struct BadIdx {
  const char* name;
  std::string bytes;
  const char* words;
};

TEST(Idx, MalformedFilesAreRefusedWithTheReason) {
  const std::string good = idx_bytes({10, 4, 4}), packed = gzip(good);
  const BadIdx rows[] = {
      {"empty", "", "ends inside its header"},
      {"half a magic", good.substr(0, 3), "ends inside its header"},
      {"half a header", good.substr(0, 9), "ends inside its header"},
      {"no elements", good.substr(0, 16), "header promises 160 elements (10, 4, 4), but it has 0"},
      {"one short", good.substr(0, good.size() - 1), "but it has 159"},
      {"one more", good + "x", "has bytes after the 160 elements"},
      {"wrong magic", "\x89PNG" + good.substr(4), "does not begin with 00 00 08"},
      {"text", "hello, world\n", "does not begin with 00 00 08"},
      {"floats", idx_header({10}, 0x0d) + std::string(40, 'x'), "holds float32"},
      {"rank 0", idx_header({}), "not an IDX file"},
      {"rank 9", idx_header(std::vector<uint32_t>(9, 1)) + "x", "9 dimensions"},
      {"huge", idx_header({4294967295u, 4294967295u, 4294967295u}), "more than 2^64"},
      {"a lie of a terabyte", idx_header({1000000, 1000000}) + "abc", "but it has 3"},
      {"packed, cut", packed.substr(0, packed.size() - 12), "cut short"},
      {"packed, cut in its trailer", packed.substr(0, packed.size() - 2), "cut short"},
      {"packed, wrong sum", flipped(packed, packed.size() - 6), "gzip says incorrect data check"},
      {"packed, wrong length", flipped(packed, packed.size() - 2), "gzip says incorrect length check"},
      {"packed, more bytes", packed + "garbage", "after its gzip stream"},
      {"packed, one more byte", packed + "g", "after its gzip stream"},
      {"packed, longer inside", gzip(good + "x"), "has bytes after"},
      {"packed, then another", packed + packed, "has bytes after"},
      {"a bomb", idx_header({2, 2}) + std::string(1 << 20, 'x'), "has bytes after"},
  };
  const Scratch scratch;
  for (const BadIdx& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string path = scratch.write("file", row.bytes);
    const std::string message = io_error_of([&] { io::read_idx(path); });
    expect_mentions(message, row.words);
    expect_mentions(message, "[" + path + "]");
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Idx, EveryTruncationAndEveryDamagedByteOfAPackedFileIsSurvived) {
  const Scratch scratch;
  const std::string bytes = idx_bytes({6, 3, 3}), packed = gzip(bytes);
  for (size_t size = 0; size < packed.size(); ++size) {
    const std::string path = scratch.write("cut", packed.substr(0, size));
    EXPECT_THROW(io::read_idx(path), Error) << size;
  }
  for (size_t i = 0; i < packed.size(); ++i) {
    // Bytes 3 to 9 of gzip's header are flags, time and system, some of which a reader ignores.
    if (i >= 3 && i < 10) continue;
    const std::string path = scratch.write("flipped", flipped(packed, i));
    EXPECT_THROW(io::read_idx(path), Error) << i;
  }
}

TEST(Idx, WhatIsNoRegularFileIsRefused) {
  const Scratch scratch;
  expect_mentions(io_error_of([&] { io::read_idx(scratch.path("absent")); }),
                  "No such file or directory; expected an IDX file");
  expect_mentions(io_error_of([&] { io::read_idx(scratch.folder()); }), "not a regular file");
  ASSERT_EQ(mkfifo(scratch.path("pipe").c_str(), 0600), 0);
  expect_mentions(io_error_of([&] { io::read_idx(scratch.path("pipe")); }), "not a regular file");
}

TEST(LabelledImages, PairsThatDoNotFitAreRefused) {
  const Scratch scratch;
  const std::string images = scratch.write("images", idx_bytes({10, 4, 4})),
                    labels = scratch.write("labels", idx_bytes({10}));
  const std::string fewer = scratch.write("fewer", idx_bytes({9})), none = scratch.write("none", idx_bytes({0}));
  const std::string no_images = scratch.write("no-images", idx_bytes({0, 4, 4}));
  const std::string flat = scratch.write("flat", idx_bytes({10, 4, 0}));
  EXPECT_EQ(io::read_labelled_images(images, labels).labels.size(), 10u);
  expect_mentions(io_error_of([&] { io::read_labelled_images(images, fewer); }),
                  "holds 9 labels, but " + images + " holds 10");
  // The reader compares headers before it reads any image: this file contains no images.
  const std::string header = idx_bytes({10, 4, 4}).substr(0, 16).replace(4, 4, std::string("\0\0\xea\x60", 4));
  const std::string promised = scratch.write("promised", header);
  expect_mentions(io_error_of([&] { io::read_labelled_images(promised, labels); }), "holds 10 labels, but");
  expect_mentions(io_error_of([&] { io::read_labelled_images(labels, images); }), "shape (10,), expected images");
  expect_mentions(io_error_of([&] { io::read_labelled_images(images, images); }), "expected labels (n)");
  expect_mentions(io_error_of([&] { io::read_labelled_images(no_images, none); }), "holds no image");
  expect_mentions(io_error_of([&] { io::read_labelled_images(flat, labels); }), "holds no image");
}

}  // namespace
}  // namespace plugrad::test
