#include <plugrad/io/safetensors.hpp>

#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace plugrad::test {
namespace {

std::string length_bytes(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

std::string file_of(const std::string& header, const std::string& data = "") {
  return length_bytes(header.size()) + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, WhatIsWrittenReadsBack) {
  const Scratch scratch;
  const Device device = default_device();
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> floats = {0.0f, -0.0f, 1.5f, infinity, -infinity, 1e-42f};
  const std::map<std::string, Tensor> tensors = {
      {"f32", Tensor::from(floats, {2, 3}, device)},
      {"nan", Tensor::from(std::vector<float>{nan}, {1}, device)},
      {"f64", Tensor::from(std::vector<double>{0.1, -1e300}, {2, 1, 1}, device)},
      {"i64", Tensor::from(std::vector<int64_t>{INT64_MIN, INT64_MAX, 0}, {3}, device)},
      {"bool", Tensor::from(std::vector<bool>{true, false, true}, {3}, device)},
      {"scalar", Tensor::from(std::vector<float>{7}, {}, device)},
      {"empty", Tensor::from(std::vector<float>{}, {0, 5}, device)},
      {"a \"name\" \n \xc3\xa9", Tensor::from(std::vector<float>{1}, {1}, device)},
  };
  const io::Metadata metadata = {{"key", "value"}, {"quote", "\"\\\n"}, {"empty", ""}};
  const std::string path = scratch.path("a.safetensors");
  io::write_safetensors(path, tensors, metadata);
  const io::Safetensors file = io::read_safetensors(path, device);
  EXPECT_EQ(file.metadata, metadata);
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const Tensor& back = file.tensors.at(name);
    EXPECT_EQ(back.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(back.shape(), tensor.shape()) << name;
    std::vector<uint8_t> before(static_cast<size_t>(tensor.count() * item_size(tensor.dtype())) + 1), after = before;
    tensor.copy_to_host(before.data());
    back.copy_to_host(after.data());
    EXPECT_EQ(before, after) << name;
  }
}

TEST(Safetensors, ViewsAreWrittenAsTheyRead) {
  const Scratch scratch;
  const Device device = default_device();
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}, device);
  io::write_safetensors(scratch.path("a"), {{"t", transpose(x)}, {"r", slice(x, 1, 2, -4, -2)}});
  const io::Safetensors file = io::read_safetensors(scratch.path("a"), device);
  EXPECT_EQ(file.tensors.at("t").to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(file.tensors.at("r").to_vector<float>(), (std::vector<float>{3, 1, 6, 4}));
}

// The elements have arbitrary bytes. The format has every dtype of plugrad.
TEST(Safetensors, OneTensorOrSomeOfItsRowsReadAloneInEveryDType) {
  const Scratch scratch;
  std::map<std::string, Tensor> tensors;
  std::vector<uint8_t> elements(6 * 8);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<uint8_t>(i % 2);
  for (const DType dtype : kRealDTypes) {
    tensors[dtype_name(dtype)] = Tensor::from_host(elements.data(), 6, dtype, {3, 2}, default_device());
  }
  io::write_safetensors(scratch.path("a"), tensors, {{"k", "v"}});
  const io::SafetensorsFile file(scratch.path("a"));
  std::filesystem::remove(scratch.path("a"));  // the open file remains
  EXPECT_EQ(file.header().metadata.at("k"), "v");
  EXPECT_EQ(file.keys(), (std::vector<std::string>{"bf16", "bool", "f16", "f32", "f64", "i16", "i32", "i64", "i8", "u8"}));
  for (const DType dtype : kRealDTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const size_t size = static_cast<size_t>(item_size(dtype));
    EXPECT_EQ(file.info(dtype_name(dtype)).dtype, dtype);
    const Tensor whole = file.get(dtype_name(dtype), default_device()), row = file.rows(dtype_name(dtype), 1, 2);
    EXPECT_EQ(whole.shape(), (Shape{3, 2}));
    EXPECT_EQ(row.shape(), (Shape{1, 2}));
    EXPECT_EQ(row.dtype(), dtype);
    std::vector<uint8_t> bytes(6 * size), part(2 * size);
    whole.copy_to_host(bytes.data());
    row.copy_to_host(part.data());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), elements.begin()));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + static_cast<ptrdiff_t>(2 * size)));
  }
}

// The second of two large tensors does not begin at a page. A write to a tensor does not change the file.
TEST(Safetensors, TensorsMapTheFile) {
  const Scratch scratch;
  std::map<std::string, Tensor> tensors{{"small", full({3}, 2)}, {"yes", full({1 << 17}, 1, DType::boolean)}};
  for (const char* name : {"a", "b"}) tensors[name] = rand({100, 1001});
  io::write_safetensors(scratch.path("file"), tensors);
  const std::string before = read_file(scratch.path("file"));
  std::map<std::string, Tensor> mapped;
  {
    const io::SafetensorsFile file(scratch.path("file"));
    for (const std::string& name : file.keys()) mapped[name] = file.map(name);
  }
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(equal(mapped[name], tensor)) << name;
  mapped["a"].add_(mapped["b"]);
  EXPECT_TRUE(equal(mapped["a"], tensors["a"] + tensors["b"]));
  EXPECT_EQ(read_file(scratch.path("file")), before);
}

TEST(Safetensors, RowsThatDoNotExistAreRefused) {
  const Scratch scratch;
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, {2}, default_device());
  const Tensor none = Tensor::from(std::vector<float>{}, {0, 3}, default_device());
  io::write_safetensors(scratch.path("a"), {{"x", x}, {"scalar", sum(x)}, {"none", none}});
  const io::SafetensorsFile file(scratch.path("a"));
  EXPECT_EQ(file.rows("x", 2, 2).shape(), Shape{0});
  EXPECT_EQ(file.rows("none", 0, 0).shape(), (Shape{0, 3}));
  for (const auto& [first, last] : {std::pair{-1, 1}, {0, 3}, {2, 1}}) {
    EXPECT_THROW(file.rows("x", first, last), Error) << first << " " << last;
  }
  EXPECT_THROW(file.rows("scalar", 0, 0), Error);
  try {
    file.get("y");
    ADD_FAILURE() << "a name that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    expect_mentions(error.what(), "has no tensor \"y\": keys() lists its 3 names");
  }
}

// The expected bytes are those that the format's own library writes for these tensors.
TEST(Safetensors, TheBytesAreThoseOfTheFormat) {
  const Scratch scratch;
  const Device device = default_device();
  io::write_safetensors(scratch.path("a"),
                        {{"b", Tensor::from(std::vector<float>{1, 2}, {2}, device)},
                         {"a", Tensor::from(std::vector<bool>{true}, {1}, device)},
                         {"c", Tensor::from(std::vector<int64_t>{5}, {}, device)}},
                        {{"k", "v"}});
  std::string header = R"({"__metadata__":{"k":"v"},)" + entry("c", "I64", "[]", "[0,8]") + "," +
                       entry("b", "F32", "[2]", "[8,16]") + "," + entry("a", "BOOL", "[1]", "[16,17]") + "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::string data("\5\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40\1", 17);
  EXPECT_EQ(read_file(scratch.path("a")), file_of(header, data));
}

TEST(Safetensors, EqualContentsGiveEqualFiles) {
  const Scratch scratch;
  const std::map<std::string, Tensor> tensors = {{"x", arange(0, 10, 1, DType::f32, default_device())}};
  io::write_safetensors(scratch.path("a"), tensors);
  io::write_safetensors(scratch.path("b"), tensors);
  EXPECT_EQ(read_file(scratch.path("a")), read_file(scratch.path("b")));
}

TEST(Safetensors, FilesOfOtherWritersAreRead) {
  const Scratch scratch;
  // A valid file: tensors out of order, unaligned, with blanks and without metadata.
  const std::string header =
      "{ " + entry("z", "BOOL", "[1]", "[8,9]") + " ,\n" + entry("a", "F32", "[1, 2]", "[ 0, 8 ]") + "}   ";
  const std::string path = scratch.write("a", file_of(header, std::string("\0\0\x80\x3f\0\0\0\x40\1", 9)));
  const io::Safetensors file = io::read_safetensors(path, default_device());
  EXPECT_EQ(file.tensors.at("a").to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(file.tensors.at("z").to_vector<uint8_t>(), (std::vector<uint8_t>{1}));
  EXPECT_TRUE(io::read_safetensors(scratch.write("b", file_of("{}")), default_device()).tensors.empty());
  // A length that begins with the two magic bytes of gzip does not make a gzip file.
  std::string padded = "{}";
  padded.resize(0x8b1f, ' ');
  EXPECT_TRUE(io::read_safetensors_header(scratch.write("c", file_of(padded))).tensors.empty());
}

TEST(Safetensors, WhatCannotBeWrittenIsRefused) {
  const Scratch scratch;
  const Tensor x = Tensor::from(std::vector<float>{1}, {1}, default_device());
  EXPECT_THROW(io::write_safetensors(scratch.path("a"), {{"x", Tensor()}}), Error);
  EXPECT_THROW(io::write_safetensors(scratch.path("a"), {{"__metadata__", x}}), Error);
  EXPECT_THROW(io::write_safetensors(scratch.path("a"), {{"\xff", x}}), Error);
  EXPECT_THROW(io::write_safetensors(scratch.path("a"), {{"x", x}}, {{"k", "\xc0\x80"}}), Error);
  EXPECT_TRUE(scratch.names().empty());
}

struct BadFile {
  const char* name;
  std::string bytes;
  const char* words;
};

std::vector<BadFile> bad_frames() {
  const std::string good = "{" + entry("x", "F32", "[2]", "[0,8]") + "}", data(8, '\0');
  return {
      {"empty", "", "shorter than the 8 bytes"},
      {"seven bytes", "1234567", "shorter than the 8 bytes"},
      {"no header", length_bytes(0), "does not begin with '{'"},
      {"header beyond the file", length_bytes(100) + "{}", "it claims a header of 100 bytes, but the whole file has 10"},
      {"header of 2^64 - 1 bytes", length_bytes(UINT64_MAX) + "{}", "it claims a header of 18446744073709551615 bytes"},
      {"header of 2^63 bytes", length_bytes(uint64_t{1} << 63) + "{}", "it claims a header of 9223372036854775808 bytes"},
      {"data cut", file_of(good, data.substr(1)), "lies at bytes 0 .. 8, but there are 7"},
      {"data missing", file_of(good), "but there are 0"},
      {"trailing garbage", file_of(good, data + "x"), "1 bytes after its last tensor belong to no tensor"},
      {"garbage after no tensor", file_of("{}", "x"), "1 bytes after its last tensor"},
      {"a blank first", file_of(" " + good, data), "does not begin with '{'"},
      {"a list", file_of("[1]"), "does not begin with '{'"},
      {"not JSON", file_of("{nonsense}"), "not JSON in UTF-8 (byte"},
      {"cut JSON", file_of(good.substr(0, 20), data), "not JSON in UTF-8"},
      {"text after JSON", file_of(good + "{}", data), "not JSON in UTF-8"},
      {"a zero byte after JSON", file_of(good + std::string("\0x", 2), data), "has a zero byte"},
      {"not UTF-8", file_of("{" + entry("\xff\xfe", "F32", "[2]", "[0,8]") + "}", data), "not JSON in UTF-8"},
      {"overlong UTF-8", file_of("{" + entry("\xc0\x80", "F32", "[2]", "[0,8]") + "}", data), "not JSON in UTF-8"},
      {"a key twice", file_of("{" + entry("x", "F32", "[2]", "[0,8]") + "," + entry("x", "F32", "[2]", "[0,8]") + "}", data),
       "the key \"x\" twice"},
      {"a field twice", file_of(R"({"x":{"dtype":"F32","dtype":"F64","shape":[1],"data_offsets":[0,8]}})", data),
       "\"dtype\" twice"},
      {"an escaped key twice", file_of(R"({"__metadata__":{"a":"1","\u0061":"2"}})"), "\"a\" twice"},
      {"nested deeply", file_of("{\"x\":" + std::string(100000, '[') + "}"), "nested too deeply"},
      {"metadata a list", file_of(R"({"__metadata__":[]})"), "__metadata__ is not a map"},
      {"metadata a number", file_of(R"({"__metadata__":{"k":1}})"), "metadata \"k\" is not text"},
      {"a huge number", file_of(R"({"x":{"dtype":"F32","shape":[1e999],"data_offsets":[0,8]}})", data),
       "does not fit into 64 bits"},
  };
}

std::vector<BadFile> bad_entries() {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets,
                      const std::string& data) { return file_of("{" + entry("x", dtype, shape, offsets) + "}", data); };
  const auto two = [](const std::string& a, const std::string& b, size_t bytes) {
    return file_of("{" + entry("a", "F32", "[1]", a) + "," + entry("b", "F32", "[1]", b) + "}", std::string(bytes, '\0'));
  };
  const std::string data(8, '\0');
  return {
      {"unknown dtype", one("F8_E4M3", "[4]", "[0,8]", data),
       "tensor \"x\" has the dtype \"F8_E4M3\"; expected one of F32, F64, F16, BF16, I32, I64, U8, I8, I16, BOOL"},
      {"a dtype of another case", one("f32", "[2]", "[0,8]", data), "the dtype \"f32\""},
      {"wrong size", one("F32", "[3]", "[0,8]", data), "has 8 bytes, but f32 of shape (3,) takes 12"},
      {"wrong size of a scalar", one("F32", "[]", "[0,8]", data), "takes 4"},
      {"size overflows", one("F32", "[4611686018427387904, 4]", "[0,8]", data), "more than 2^63"},
      {"count wraps to the size", one("F64", "[2305843009213693953]", "[0,8]", data), "more than 2^63"},
      {"overflow behind a zero", one("F32", "[0,9223372036854775807,9223372036854775807]", "[0,0]", ""), "more than 2^63"},
      {"extent of 2^63", one("F32", "[9223372036854775808]", "[0,8]", data), "not a whole number below 2^63"},
      {"negative extent", one("F32", "[-2]", "[0,8]", data), "not a whole number below 2^63"},
      {"fractional extent", one("F32", "[2.0]", "[0,8]", data), "not a whole number below 2^63"},
      {"rank 9", one("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]", data), "9 dimensions"},
      {"shape a number", one("F32", "2", "[0,8]", data), "a shape that is not a list"},
      {"offsets swapped", one("F32", "[2]", "[8,0]", data), "lies at bytes 8 .. 0"},
      {"offsets beyond", one("F32", "[2]", "[8,16]", data), "but there are 8"},
      {"offsets of 2^64 - 1", one("F32", "[2]", "[18446744073709551608,18446744073709551615]", data), "but there are 8"},
      {"offsets beyond 2^64", one("F32", "[2]", "[0,18446744073709551624]", data), "not two whole numbers"},
      {"offsets negative", one("F32", "[2]", "[-8,0]", data), "not two whole numbers"},
      {"three offsets", one("F32", "[2]", "[0,8,8]", data), "not two whole numbers"},
      {"a gap at the start", one("F32", "[1]", "[4,8]", data), "leaves a gap: it begins at byte 4, expected 0"},
      {"a gap between", two("[0,4]", "[8,12]", 12), "tensor \"b\" leaves a gap"},
      {"an overlap", two("[0,4]", "[0,4]", 4), "overlaps the one before it"},
      {"a part overlap", two("[0,4]", "[2,6]", 6), "overlaps the one before it"},
      {"a field more", file_of(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", data),
       "exactly the fields dtype"},
      {"a field less", file_of(R"({"x":{"dtype":"F32","shape":[2]}})", data), "exactly the fields dtype"},
      {"another field", file_of(R"({"x":{"dtype":"F32","shape":[2],"offsets":[0,8]}})", data), "exactly the fields dtype"},
      {"no map", file_of(R"({"x":5})"), "exactly the fields dtype"},
      {"a name that must be escaped", file_of(R"({"a\nb":5})"), R"(tensor "a\nb")"},
      {"a bool of 2", one("BOOL", "[8]", "[0,8]", "\1\1\1\1\1\1\1\2"), "neither 0 nor 1"},
  };
}

TEST(Safetensors, MalformedFilesAreRefusedWithTheReason) {
  const Scratch scratch;
  std::vector<BadFile> rows = bad_frames();
  for (BadFile& row : bad_entries()) rows.push_back(std::move(row));
  for (const BadFile& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string path = scratch.write("file", row.bytes);
    const std::string message = io_error_of([&] { io::read_safetensors(path, default_device()); });
    expect_mentions(message, row.words);
    expect_mentions(message, "[" + path + "]");
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_LT(message.size(), 1000u);
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const Scratch scratch;
  io::write_safetensors(scratch.path("a"), {{"x", arange(0, 5, 1, DType::f32, default_device())}}, {{"k", "v"}});
  const std::string bytes = read_file(scratch.path("a"));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(io::read_safetensors_header(scratch.write("cut", bytes.substr(0, size))), Error) << size;
  }
}

// A damaged header may still be valid, and must then fit the file. It must never crash the reader.
TEST(Safetensors, DamagedBytesAreRefusedOrConsistent) {
  const Scratch scratch;
  io::write_safetensors(scratch.path("a"), {{"x", arange(0, 5, 1, DType::f32, default_device())}}, {{"k", "v"}});
  const std::string bytes = read_file(scratch.path("a"));
  size_t refused = 0;
  for (size_t i = 0; i < bytes.size() - 20; ++i) {
    for (const char mask : {'\x01', '\x10', '\x80', '\xff'}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ mask);
      const std::string path = scratch.write("damaged", damaged);
      try {
        const io::SafetensorsHeader header = io::read_safetensors_header(path);
        uint64_t covered = header.data;
        for (const auto& [name, found] : header.tensors) covered += found.end - found.begin;
        EXPECT_EQ(covered, bytes.size());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::io_error) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, bytes.size());
}

}  // namespace
}  // namespace plugrad::test
