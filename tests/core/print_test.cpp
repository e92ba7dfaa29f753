// operator<< writes the same text as NumPy 2.4: print_golden.py wrote the expected texts to print_golden.txt.
#include <plugrad/runtime/numbers.hpp>
#include <tests/core/expect.hpp>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace plugrad::test {
namespace {

std::string text_of(const Tensor& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

struct Golden {
  DType dtype;
  Shape shape;
  std::vector<std::string> elements;  // none: 0, 1, 2, ...
  std::string head, text;
};

Golden parse(const std::string& head) {
  Golden golden;
  golden.head = head;
  std::istringstream words(head);
  std::string word;
  words >> word;
  golden.dtype = dtype_from_name(word);
  words >> word;
  std::istringstream extents(word.substr(1, word.size() - 2));
  for (std::string extent; std::getline(extents, extent, ',');) golden.shape.push_back(std::stoll(extent));
  while (words >> word) golden.elements.push_back(word);
  return golden;
}

std::vector<Golden> goldens() {
  std::ifstream file(PLUGRAD_PRINT_GOLDEN);
  std::vector<Golden> all;
  for (std::string line; std::getline(file, line);) {
    all.push_back(parse(line));
    for (bool first = true; std::getline(file, line) && line != "---"; first = false)
      all.back().text += (first ? "" : "\n") + line;
  }
  return all;
}

Tensor tensor_of(const Golden& golden) {
  if (golden.elements.empty()) return counting(golden.shape, golden.dtype);
  if (golden.dtype == DType::i64) {
    std::vector<int64_t> integers;
    for (const std::string& each : golden.elements) integers.push_back(std::stoll(each));
    return i64(integers, golden.shape);
  }
  std::vector<double> values;
  for (const std::string& each : golden.elements) values.push_back(std::strtod(each.c_str(), nullptr));
  return of(golden.dtype, values, golden.shape);
}

TEST(Print, AsNumPy) {
  const std::vector<Golden> all = goldens();
  ASSERT_GT(all.size(), 150u) << PLUGRAD_PRINT_GOLDEN;
  for (const Golden& each : all) EXPECT_EQ(text_of(tensor_of(each)), each.text) << each.head;
}

TEST(Print, ViewsAsWhatTheyShow) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(text_of(transpose(x)), "[[0. 3.]\n [1. 4.]\n [2. 5.]]");
  EXPECT_EQ(text_of(slice(x, 1, -1, -4, -2)), "[[2. 0.]\n [5. 3.]]");
  EXPECT_EQ(text_of(expand(i64({7}), {2, 2})), "[[7 7]\n [7 7]]");
  EXPECT_EQ(text_of(select(x, 0, 1)), "[3. 4. 5.]");
  const Tensor large = counting({40, 50}, DType::i64);
  EXPECT_EQ(text_of(slice(transpose(large), 0, -1, -51, -1)), text_of(contiguous(slice(transpose(large), 0, -1, -51, -1))));
  EXPECT_EQ(text_of(Tensor()), "undefined");
  EXPECT_EQ(text_of(x.requires_grad() ? x : counting({1}).requires_grad_()), "[0.]");
}

TEST(Print, CopiesOnlyWhatItShows) {
  const Device device = default_device();
  const Tensor large = zeros({1500, 1500});
  device.trim();
  const DeviceCounters before = device.counters();
  device.reset_peak();
  const uint64_t peak = device.memory().peak;
  text_of(large);
  text_of(transpose(large));
  EXPECT_EQ(device.counters().downloads - before.downloads, 2u);
  EXPECT_LE(device.memory().peak - peak, 1u << 20);
  EXPECT_LE(device.counters().kernels - before.kernels, 8u);
}

TEST(Numbers, HaveTheShortestTextThatReadsBack) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(-1), "-1");
  EXPECT_EQ(number_text(1e-8), "1e-08");
  EXPECT_EQ(number_text(INFINITY), "inf");
  EXPECT_EQ(fixed_text(2.0 / 3, 2), "0.67");
  EXPECT_EQ(fixed_text(1e300, 0).size(), 301u);
}

TEST(Print, TheLocaleChangesNothing) {
  const Tensor x = f64({1.5, -2.25, 1e-9});
  const std::string before = text_of(x);
  if (!std::setlocale(LC_NUMERIC, "de_DE.UTF-8")) GTEST_SKIP() << "no locale with a decimal comma is installed";
  const std::string after = text_of(x);
  EXPECT_TRUE(throws(Code::invalid, {"p is 1.5"}, [&] { dropout(x, 1.5); }));
  std::setlocale(LC_NUMERIC, "C");
  EXPECT_EQ(before, after);
}

TEST(Print, RecordsNothing) {
  const Tensor x = f64({1, 2}).requires_grad_();
  const Tensor y = x * 2;
  EXPECT_EQ(text_of(y), "[2. 4.]");
  sum(y).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {2, 2}));
}

}  // namespace
}  // namespace plugrad::test
