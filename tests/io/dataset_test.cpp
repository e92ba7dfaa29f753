#include <plugrad/io/fashion_mnist.hpp>
#include <plugrad/io/moons.hpp>

#include <tests/io/idx_bytes.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace plugrad::test {
namespace {

TEST(FashionMnist, AMissingDataSetNamesTheCommandThatInstallsIt) {
  const Scratch scratch;
  const std::string message = io_error_of([&] { io::read_fashion_mnist(scratch.folder()); });
  expect_mentions(message, "apt-get install dataset-fashion-mnist");
  expect_mentions(message, scratch.folder());
}

TEST(FashionMnist, FilesAreTakenPackedOrPlain) {
  const Scratch scratch;
  scratch.write("train-images-idx3-ubyte.gz", gzip(idx_bytes({20, 28, 28})));
  scratch.write("train-labels-idx1-ubyte", idx_bytes({20}, 10));
  scratch.write("t10k-images-idx3-ubyte", idx_bytes({5, 28, 28}));
  scratch.write("t10k-labels-idx1-ubyte.gz", gzip(idx_bytes({5}, 10)));
  const io::FashionMnist data = io::read_fashion_mnist(scratch.folder());
  EXPECT_EQ(data.train.count, 20);
  EXPECT_EQ(data.test.count, 5);
  EXPECT_EQ(data.train.labels[13], 3);
}

TEST(FashionMnist, DebiansPackageHasSeventyThousandImagesInTenEqualClasses) {
  if (!std::filesystem::exists(io::kFashionMnistDirectory)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const io::FashionMnist data = io::read_fashion_mnist();
  EXPECT_EQ(data.train.count, 60000);
  EXPECT_EQ(data.test.count, 10000);
  for (uint8_t label = 0; label < 10; ++label) {
    EXPECT_EQ(std::ranges::count(data.train.labels, label), 6000);
    EXPECT_EQ(std::ranges::count(data.test.labels, label), 1000);
  }
}

TEST(Moons, PointsLieOnTheirHalfCircle) {
  const io::Moons moons = io::make_moons(200, 0, 3);
  ASSERT_EQ(moons.labels.size(), 200u);
  for (size_t i = 0; i < 200; ++i) {
    const double x = moons.points[2 * i], y = moons.points[2 * i + 1];
    const bool lower = moons.labels[i] == 1;
    EXPECT_NEAR(lower ? std::hypot(x - 1, y - 0.5) : std::hypot(x, y), 1, 1e-6);
    EXPECT_TRUE(lower ? y <= 0.5 : y >= 0) << x << ", " << y;
  }
  EXPECT_EQ(std::ranges::count(moons.labels, 1), 100);
}

TEST(Moons, TheSeedDecides) {
  EXPECT_EQ(io::make_moons(50, 0.1, 1).points, io::make_moons(50, 0.1, 1).points);
  EXPECT_NE(io::make_moons(50, 0.1, 1).points, io::make_moons(50, 0.1, 2).points);
  EXPECT_TRUE(io::make_moons(0, 0.1, 1).points.empty());
  EXPECT_THROW(io::make_moons(-1, 0.1, 1), Error);
  EXPECT_THROW(io::make_moons(1, std::nan(""), 1), Error);
}

}  // namespace
}  // namespace plugrad::test
