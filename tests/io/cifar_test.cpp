#include <plugrad/io/cifar.hpp>

#include <tests/io/idx_bytes.hpp>
#include <tests/io/mutations.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

namespace plugrad::test {
namespace {

using io::CifarKind;

// Images whose pixels are all `pixel`.
std::string record(const std::string& labels, char pixel) { return labels + std::string(3072, pixel); }

TEST(Cifar, TheFilesOfADirectoryAreJoined) {
  const Scratch scratch;
  for (int i = 1; i <= 5; ++i) {
    scratch.write("data_batch_" + std::to_string(i) + ".bin", record({static_cast<char>(i)}, static_cast<char>(10 * i)));
  }
  scratch.write("test_batch.bin", record("\x09", '\xff') + record("\x03", '\1'));
  const io::Cifar ten = io::read_cifar(scratch.folder(), CifarKind::ten);
  EXPECT_EQ(ten.train.labels, (std::vector<uint8_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(ten.train.count, 5);
  EXPECT_EQ(ten.train.pixels.size(), 5u * 3072);
  EXPECT_EQ(ten.train.pixels[3072], 20);
  EXPECT_EQ(ten.test.labels, (std::vector<uint8_t>{9, 3}));
  EXPECT_TRUE(ten.train.coarse_labels.empty());
  scratch.write("train.bin", record("\x13\x63", '\1'));
  scratch.write("test.bin", gzip(record(std::string("\0\1", 2), '\2')));
  const io::Cifar hundred = io::read_cifar(scratch.folder(), CifarKind::hundred);
  EXPECT_EQ(hundred.train.labels, std::vector<uint8_t>{99});
  EXPECT_EQ(hundred.train.coarse_labels, std::vector<uint8_t>{19});
  EXPECT_EQ(hundred.test.labels, std::vector<uint8_t>{1});
}

TEST(Cifar, MalformedFilesAreRefusedWithTheReason) {
  const Scratch scratch;
  struct Row {
    std::string bytes;
    CifarKind kind;
    const char* words;
  };
  const Row rows[] = {
      {"", CifarKind::ten, "holds no image"},
      {record("\1", 'x').substr(1), CifarKind::ten, "after 0 images of 3073 bytes it has 3072 more bytes"},
      {record("\1", 'x') + "yz", CifarKind::ten, "after 1 images of 3073 bytes it has 2 more bytes"},
      {record("\x0a", 'x'), CifarKind::ten, "image 0 has the label 10, but there are 10 classes"},
      {record("\x14\1", 'x'), CifarKind::hundred, "image 0 has the label 20, but there are 20 classes"},
      {record("\1\x64", 'x'), CifarKind::hundred, "the label 100, but there are 100 classes"},
  };
  for (const Row& row : rows) {
    const std::string path = scratch.write("file", row.bytes);
    expect_mentions(io_error_of([&] { io::read_cifar_file(path, row.kind); }), row.words);
  }
  expect_mentions(io_error_of([&] { io::read_cifar(scratch.folder(), CifarKind::hundred); }), "binary version of CIFAR");
}

TEST(Cifar, DamagedFilesAreRefusedOrRead) {
  const Scratch scratch;
  const auto read = [](const std::string& path) { EXPECT_EQ(io::read_cifar_file(path, CifarKind::ten).count, 1); };
  EXPECT_GT(count_refused(scratch, record("\1", 'x'), 300, read), 50u);
}

}  // namespace
}  // namespace plugrad::test
