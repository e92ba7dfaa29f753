#include <plugrad/io/npy.hpp>

#include <plugrad/ops/views.hpp>
#include <tests/io/mutations.hpp>
#include <tests/io/scratch.hpp>
#include <tests/io/zip_bytes.hpp>

#include <gtest/gtest.h>

#include <complex>

namespace plugrad::test {
namespace {

std::string bytes_in(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.count() * item_size(tensor.dtype())), '\0');
  tensor.copy_to_host(bytes.data());
  return bytes;
}

// A tensor of shape (3, 2) whose bytes are 0 or 1, which suits every dtype.
Tensor small(DType dtype) {
  std::string bytes(static_cast<size_t>(6 * item_size(dtype)), '\0');
  for (size_t i = 0; i < bytes.size(); i += 3) bytes[i] = 1;
  return Tensor::from_host(bytes.data(), 6, dtype, {3, 2}, default_device());
}

TEST(Npy, WhatIsWrittenReadsBackInEveryDTypeOfNumPy) {
  const Scratch scratch;
  for (const DType dtype : kEveryDType) {
    if (dtype == DType::bf16) continue;
    SCOPED_TRACE(dtype_name(dtype));
    const Tensor x = small(dtype);
    io::write_npy(scratch.path("a.npy"), x);
    const Tensor back = io::read_npy(scratch.path("a.npy"));
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.shape(), x.shape());
    EXPECT_EQ(bytes_in(back), bytes_in(x));
  }
}

// The bytes that numpy.save writes.
TEST(Npy, TheBytesAreThoseOfNumPy) {
  const Scratch scratch;
  io::write_npy(scratch.path("a"), Tensor::from(std::vector<int16_t>{1, -1}, {2, 1}, default_device()));
  const std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }" + std::string(58, ' ');
  EXPECT_EQ(read_file(scratch.path("a")), npy_file(header, std::string("\1\0\xff\xff", 4)));
  io::write_npy(scratch.path("b"), Tensor::from(std::vector<float>{}, {0}, default_device()));
  expect_mentions(read_file(scratch.path("b")), "'shape': (0,), }");
  io::write_npy(scratch.path("c"), Tensor::from(std::vector<bool>{true}, {}, default_device()));
  expect_mentions(read_file(scratch.path("c")), "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
}

TEST(Npy, OtherOrdersAndVersionsRead) {
  const Scratch scratch;
  const std::string floats = little(1.0f) + little(2.0f) + little(3.0f) + little(4.0f) + little(5.0f) + little(6.0f);
  const Tensor x = io::read_npy(scratch.write("a", npy_array("<f4", "(2, 3)", floats, true)));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(io::read_npy(scratch.write("b", npy_array("<f4", "(6,)", floats, true))).shape(), Shape{6});
  const std::string big("\0\0\0\2\xff\xff\xff\xfe", 8);
  EXPECT_EQ(io::read_npy(scratch.write("c", npy_array(">i4", "(2,)", big))).to_vector<int32_t>(),
            (std::vector<int32_t>{2, -2}));
  const std::string big_complex("\x3f\x80\0\0\xc0\0\0\0", 8);
  EXPECT_EQ(io::read_npy(scratch.write("e", npy_array(">c8", "(1,)", big_complex))).item<std::complex<float>>(),
            std::complex<float>(1, -2));
  const std::string header = "{\"shape\": (1L, 2), 'fortran_order':False,'descr':'|u1'}";
  for (const int version : {1, 2, 3}) {
    const Tensor bytes = io::read_npy(scratch.write("d", npy_file(header, "\7\xff", version)));
    EXPECT_EQ(bytes.shape(), (Shape{1, 2})) << version;
    EXPECT_EQ(bytes.to_vector<uint8_t>(), (std::vector<uint8_t>{7, 255})) << version;
  }
}

struct BadRow {
  const char* name;
  std::string bytes;
  const char* words;
};

std::vector<BadRow> bad_arrays() {
  const std::string data(8, '\0');
  const auto type = [&](const std::string& descr) { return npy_array(descr, "(1,)", data); };
  const auto shape = [&](const std::string& text) { return npy_array("<f4", text, data); };
  const auto header = [&](const std::string& text) { return npy_file(text, data); };
  return {
      {"empty", "", "does not begin with \\x93NUMPY"},
      {"another format", std::string(80, 'x'), "does not begin with \\x93NUMPY"},
      {"version 4", npy_file("{}", data, 4), "has version 4 of the .npy format; 1, 2 and 3"},
      {"version 0", npy_file("{}", data, 0), "has version 0"},
      {"header cut", npy_array("<f4", "(2,)", "").substr(0, 30), "its header should have"},
      {"uint16", type("<u2"), "unsigned integers of 16 or 32 bits: save array.astype('int64')"},
      {"uint64", type("<u8"), "of 64 bits: save array.astype('int64') or"},
      {"complex numbers of longdoubles", type("<c32"), "complex numbers of type clongdouble"},
      {"objects", type("|O"), "Python objects, which are not read"},
      {"longdouble", type("<f16"), "longdouble: save array.astype('float64')"},
      {"text", type("<U3"), "elements of type 'U3', expected bool"},
      {"an empty type", type(""), "elements of type ''"},
      {"records", npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", data), "records"},
      {"too short", shape("(3,)"), "its array of shape (3,) takes 12 bytes, but 8 follow its header"},
      {"too long", shape("(1,)"), "has bytes after its array of shape (1,)"},
      {"rank 9", shape("(1,1,1,1,1,1,1,1,2)"), "more than 8 dimensions"},
      {"a size that wraps", shape("(4611686018427387904, 4)"), "takes more than 2^63 bytes"},
      {"a size that wraps behind 0", shape("(0, 4611686018427387904, 4)"), "takes more than 2^63 bytes"},
      {"an extent of 2^63", shape("(9223372036854775808,)"), "not a whole number below 2^63"},
      {"a negative extent", shape("(-2,)"), "not a whole number below 2^63"},
      {"no tuple", shape("2"), "no '('"},
      {"no dictionary", header("[]"), "no '{'"},
      {"no end", header("{'descr': '<f4'"), "no ','"},
      {"a text without end", header("{'descr"), "a text without end"},
      {"a missing key", header("{'descr': '<f4', 'shape': (2,)}"), "not all of descr, fortran_order and shape"},
      {"a key twice", header("{'descr': '<f4', 'descr': '<f4'}"), "an unknown or repeated key"},
      {"an unknown key", header("{'more': 1}"), "an unknown or repeated key"},
      {"an order of 1", header("{'fortran_order': 1}"), "neither True nor False"},
      {"text behind", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x"), "text after its '}'"},
      {"a bool of 2", npy_array("|b1", "(8,)", std::string(8, '\2')), "a bool that is neither 0 nor 1"},
  };
}

template <class Read> void expect_refused(const std::vector<BadRow>& rows, Read read) {
  const Scratch scratch;
  for (const BadRow& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string path = scratch.write("file", row.bytes);
    const std::string message = io_error_of([&] { read(path); });
    expect_mentions(message, row.words);
    expect_mentions(message, "[" + path + "]");
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_LT(message.size(), 1000u);
  }
}

TEST(Npy, MalformedFilesAreRefusedWithTheReason) {
  expect_refused(bad_arrays(), [](const std::string& path) { io::read_npy(path); });
}

TEST(Npy, WhatNumPyCannotHoldIsRefused) {
  const Scratch scratch;
  EXPECT_THROW(io::write_npy(scratch.path("a"), Tensor()), Error);
  EXPECT_THROW(io::write_npy(scratch.path("a"), small(DType::bf16)), Error);
  EXPECT_THROW(io::write_npz(scratch.path("a"), {{"x", small(DType::bf16)}}), Error);
  for (const std::string& name : {std::string(), std::string("\xff"), std::string(65532, 'n'), std::string("a\0b", 3)}) {
    EXPECT_THROW(io::write_npz(scratch.path("a"), {{name, small(DType::f32)}}), Error);
  }
  EXPECT_TRUE(scratch.names().empty());
}

TEST(Npz, WhatIsWrittenReadsBackStoredAndDeflated) {
  const Scratch scratch;
  const std::map<std::string, Tensor> tensors = {
      {"x", small(DType::f32)}, {"caf\xc3\xa9/y", small(DType::boolean)}, {"t", transpose(small(DType::i64))}};
  for (const bool compress : {false, true}) {
    io::write_npz(scratch.path("a"), tensors, compress);
    const std::map<std::string, Tensor> back = io::read_npz(scratch.path("a"));
    ASSERT_EQ(back.size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
      EXPECT_EQ(back.at(name).shape(), tensor.shape()) << name;
      EXPECT_EQ(bytes_in(back.at(name)), bytes_in(tensor)) << name;
    }
    io::write_npz(scratch.path("b"), tensors, compress);
    EXPECT_EQ(read_file(scratch.path("a")), read_file(scratch.path("b")));
  }
  io::write_npz(scratch.path("a"), {});
  EXPECT_TRUE(io::read_npz(scratch.path("a")).empty());
}

TEST(Npz, ArchivesOfOtherWritersAreRead) {
  const Scratch scratch;
  const std::string x = npy_array("|u1", "(2,)", "\1\2"), y = npy_array("|u1", "(1000,)", std::string(1000, '\3'));
  const std::vector<ZipRow> rows = {{"y.npy", y, 8}, {"x.npy", x}, {"notes.txt", "not an array"}};
  for (const bool wide : {false, true}) {
    const io::NpzFile file(scratch.write("a", zip_file(rows, wide, "a comment")));
    EXPECT_EQ(file.keys(), (std::vector<std::string>{"x", "y"}));
    EXPECT_EQ(file.get("x").to_vector<uint8_t>(), (std::vector<uint8_t>{1, 2}));
    EXPECT_EQ(file.get("y").to_vector<uint8_t>(), std::vector<uint8_t>(1000, 3));
    EXPECT_THROW(file.get("notes.txt"), Error);
  }
}

TEST(Npz, MalformedArchivesAreRefusedWithTheReason) {
  const std::string x = npy_array("|u1", "(2,)", "\1\2");
  const auto one = [&](ZipRow row) {
    row.name = "x.npy";
    row.bytes = x;
    return zip_file({row});
  };
  const std::string good = one({}), wide = zip_file({{"x.npy", x}}, true);
  const BadRow rows[] = {
      {"empty", "", "no directory at its end"},
      {"another format", std::string(100, 'x'), "no directory at its end"},
      {"cut", good.substr(0, good.size() - 1), "no directory at its end"},
      {"bytes in front of the end lost", good.substr(5), "its directory lies outside the file"},
      {"wide, bytes lost", wide.substr(5), "its zip64 directory is missing"},
      {"encrypted", one({.flags = 1}), "its member \"x.npy\" is encrypted"},
      {"another method", one({.method = 12}), "is packed by method 12; save it stored or deflated"},
      {"a wrong checksum", one({.checksum_mask = 1}), "its checksum is wrong"},
      {"a wrong checksum, deflated", one({.method = 8, .checksum_mask = 1}), "its checksum is wrong"},
      {"two sizes", one({.more_size = 1}), "is stored, but has two sizes"},
      {"longer inside", one({.method = 8, .more_size = -1}), "does not unpack to the"},
      {"shorter inside", one({.method = 8, .more_size = 1}), "does not unpack to the"},
      {"a bomb", one({.method = 8, .more_size = 1 << 30}), "more than its"},
      {"too many packed bytes", one({.method = 8, .more_packed = 6}), "overlaps what follows it"},
      {"an offset beyond", one({.more_offset = 1 << 20}), "overlaps what follows it"},
      {"another offset", one({.method = 8, .more_packed = -9, .more_offset = 4}), "is damaged"},
      {"a name twice", zip_file({{"x.npy", x}, {"x.npy", x}}), "the member \"x.npy\" twice"},
      {"shared bytes", zip_file({{"x.npy", x}, {.name = "y.npy", .bytes = x, .more_offset = -8}}),
       "overlaps what follows it"},
      {"no array", zip_file({{"x.npy", "nothing"}}), "its member \"x.npy\" is not a .npy file"},
      {"another array", zip_file({{"x.npy", npy_array("<u8", "(1,)", "12345678")}}), "\"x.npy\" holds unsigned"},
  };
  expect_refused({std::begin(rows), std::end(rows)}, [](const std::string& path) { io::read_npz(path); });
}

TEST(Npz, DamagedFilesAreRefusedOrConsistent) {
  const Scratch scratch;
  const std::string x = npy_array("<f4", "(2, 1)", std::string(8, '\1'));
  const auto read = [](const std::string& path) {
    for (const auto& [name, tensor] : io::read_npz(path)) EXPECT_LT(tensor.count(), 1 << 20);
  };
  for (const bool wide : {false, true}) {
    EXPECT_GT(count_refused(scratch, zip_file({{"x.npy", x}, {"y.npy", x, 8}}, wide), 400, read), 100u);
  }
  EXPECT_GT(count_refused(scratch, x, 400, [](const std::string& path) { io::read_npy(path); }), 200u);
}

}  // namespace
}  // namespace plugrad::test
