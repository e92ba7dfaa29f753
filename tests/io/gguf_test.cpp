#include <plugrad/io/gguf.hpp>

#include <tests/io/gguf_bytes.hpp>
#include <tests/io/mutations.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace plugrad::test {
namespace {

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

// A block of each type, and 16 of its elements: element i is at i * block / 16 + i * 5 % (block / 16). NumPy computed them.
struct BlockRow {
  const char* type;
  uint32_t id;
  size_t elements;
  const char* hex;
  std::vector<float> expected;
};

const BlockRow kBlocks[] = {
    {"Q4_0",
     2,
     32,
     "0030e5f1a94106a0956a26afbccdafe562f9",
     {-0.375, -0.875, -0.25, 0.25, -0.25, 0.625, 0.875, 0.125, 0.75, -0.5, -1, -0.25, -0.75, 0.5, 0.25, 0.875}},
    {"Q4_1",
     3,
     32,
     "003000b842276ad5ab2da7394551370e99b2d74c",
     {-0.25, 0.125, 0.875, 0.625, 0.125, 1.25, 0.625, 1, 0, 1.125, 0.75, -0.125, 0, -0.5, 0.625, 0}},
    {"Q5_0",
     6,
     32,
     "0030fa48d732a1df70aca1e926115901dd06f27f8f06",
     {-1.875, 1.5, 0.125, 0.125, -0.875, 0.75, -1.75, -1.25, 1.25, -0.75, 1.25, 0.125, -1.375, -2, 1.875, -2}},
    {"Q5_1",
     7,
     32,
     "003000b8f9bd0ccc21397c1ec795ca7748dc03d17a88934d",
     {1.625, 3.25, 2.375, 2.375, 2.5, 1.625, 2.75, 3.125, -0.25, 1.625, 1, 0.375, 0, 3.125, 0.375, 2}},
    {"Q8_0",
     8,
     32,
     "00307357a2e64647f03e2fb81f223f4192c58efd5185f0711ef7677a1f132a818d88",
     {14.375, -3.25, 8.75, 7.75, 5.875, 4.25, 7.875, -7.375, -14.25, -15.375, -2, -1.125, 12.875, 2.375, 5.25, -15}},
    {"Q2_K",
     10,
     256,
     "a8e5b8abeeab14cef599cc052535d5cec0ad06783f60ec83760457a17c472a49ed10c2fa0a67ce0d8f02264785762462c423399232b3"
     "9168ce358d21b527970bb48a4200a5627b0c90b818268101caff003000b8",
     {5, 8.875, 6.5, 5, 12.25, 5, 0.5, 11.25, 8.75, 5.625, 9, 1.875, 2.875, 1.5, 7.75, 6}},
    {"Q3_K",
     11,
     256,
     "7fa901a76df710c04edc083cbdb5404808b9586fbf8a6343304464f943287f2d2133cee5d95535cc78861fd80e7fa01dd0a174645397"
     "c6a0adc1367e7e3976aa6b833bad348bb5a93fc4900f8a8987f50f8c3b8efc8c4ce733da7d4597758c5cbdd130e147d9d82f7c5b7010"
     "0030",
     {-2.375, -2.125, 4, 7.75, 2.875, 0, 6, -2.125, -3.375, 1.125, -4.75, 0.75, 6, 1.5, 0.75, -3.75}},
    {"Q4_K",
     12,
     256,
     "003000b86b236b82481bd9fe630dc3ce3be4ebcab72f45b35223479f6e794d57037e2cfde9e15a7789781e3721a557d8e5a703296dcb"
     "81db3f65cf9c1bdc5d1d8fc83f0b0bb4db71be572209851d3d24f4c0cf83fe4363f82f4759778955f6ced681cbea7179ced2c8f814a1"
     "3472ff70ce369d8385452a44f318337f08cd1e614f235d3f83bc45fee9ee0403a79be118",
     {63.125, 9.375, 31, 70.375, 82.375, 50.125, 32.25, 31, 46.625, 15.75, 19.5, 21.125, 49, 37.125, 41.5, 30}},
    {"Q5_K",
     13,
     256,
     "003000b87c9311f85e0429b19f7ec0e156f65a3322e791b880ee995e3f0d307d2fbaf400693a179e0d027ed4e58be7a9ebc28a271d43"
     "a78855638144eb6603f7b2725de11fe6ac2f88a68182869793f0aad6ded8116e3ab51681c4a374fec70a68b3e4bdc92b387987416c17"
     "ec90963ec766888ab4b80eba7c5cfd81121bea9cee1810dfd5169faf26cd7b5c30c8aba44d972299e8c7b41b9a1d2b0f180600a974d6"
     "3b6332202c998e82b2522c49c439",
     {97.5, 60, 21, 37.625, 22.625, 22.625, 108.5, 101.5, 59, 43.5, 49.5, 61, 6, 6, 188.375, 151.625}},
    {"Q6_K",
     14,
     256,
     "4c7d73265b6aaf61b288fbd0aecfa766616223611e764c93aa388ffabd0a6a6412b209971e2d827076f7e49ab8fa197271be53a3442b"
     "128cdad72bad0f8aeef42a0b9a26d74fc78f2562b8701097a55b5510543d27ed600de3200a6749307fd37899c118819af6674394c3f7"
     "aa5f93f32c810a37ca7bf1013ccdf8ab8ab4a6039954e84cbe3b3f7f1183c3df8375c517b4e786a9aadf7488f892b12191387ad86aca"
     "56d8531c927b931fe8f16e795b9b331767e712dbe8f5331dd9917f01e64710dd3c25f4d21690a049453135550ec00030",
     {-8, -96.25, -210, 18.5, -31.5, 74.75, 46.75, -140, -252, -146, -129.375, -91.875, 6.625, -159.375, 26.25, -80}},
};

TEST(Gguf, BlocksDecodeToTheElementsOfTheFormat) {
  const Scratch scratch;
  for (const BlockRow& row : kBlocks) {
    SCOPED_TRACE(row.type);
    const std::string block = from_hex(row.hex);
    // Two rows. The first row is zero, because its scale d is 0.
    const std::string tensor = gguf_tensor("x", {row.elements, 2}, row.id, 0);
    const io::GgufFile file(scratch.write("a", gguf_file({}, {tensor}, std::string(block.size(), '\0') + block)));
    EXPECT_EQ(file.info("x").type, row.type);
    EXPECT_EQ(file.info("x").shape, (Shape{2, static_cast<int64_t>(row.elements)}));
    const std::vector<float> all = file.get("x").to_vector<float>(), second = file.rows("x", 1, 2).to_vector<float>();
    EXPECT_EQ(second, std::vector<float>(all.begin() + static_cast<ptrdiff_t>(row.elements), all.end()));
    for (size_t i = 0; i < row.elements; ++i) EXPECT_EQ(all[i], 0) << i;
    for (size_t i = 0; i < row.expected.size(); ++i) {
      EXPECT_EQ(second[i * row.elements / 16 + i * 5 % (row.elements / 16)], row.expected[i]) << i;
    }
    const std::vector<uint8_t> raw = file.raw("x");
    EXPECT_EQ(std::string(raw.begin() + static_cast<ptrdiff_t>(block.size()), raw.end()), block);
    const Quantized codes = file.quantized("x");
    const int64_t bits = codes.codes.size(1) * 8 / static_cast<int64_t>(row.elements);
    EXPECT_EQ(dequantize(codes.codes, codes.scales, bits).to_vector<float>(), all);
    EXPECT_EQ(codes.scales.dtype(), row.elements == 32 ? DType::f16 : DType::f32);
  }
}

TEST(Gguf, PlainTypesKeepTheirDType) {
  const Scratch scratch;
  struct Row {
    uint32_t id;
    DType dtype;
  };
  for (const auto& [id, dtype] : {Row{0, DType::f32},
                                  {1, DType::f16},
                                  {30, DType::bf16},
                                  {28, DType::f64},
                                  {24, DType::i8},
                                  {25, DType::i16},
                                  {26, DType::i32},
                                  {27, DType::i64}}) {
    SCOPED_TRACE(dtype_name(dtype));
    std::string data;
    for (int i = 0; i < 6 * item_size(dtype); ++i) data += static_cast<char>(i);
    const io::GgufFile file(scratch.write("a", gguf_file({}, {gguf_tensor("x", {3, 2}, id, 0)}, data)));
    const Tensor x = file.get("x");
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    std::string bytes(data.size(), '\0');
    x.copy_to_host(bytes.data());
    EXPECT_EQ(bytes, data);
  }
}

TEST(Gguf, EveryTypeOfMetadataReads) {
  const Scratch scratch;
  const std::string nested = gguf_array(9, 2, gguf_array(4, 1, little(uint32_t{7})) + gguf_texts({"a", "b"}));
  const std::vector<std::string> entries = {
      gguf_entry("u8", 0, "\xff"),
      gguf_entry("i8", 1, "\xff"),
      gguf_entry("u16", 2, little(uint16_t{65535})),
      gguf_entry("i16", 3, little(int16_t{-2})),
      gguf_entry("u32", 4, little(uint32_t{4294967295})),
      gguf_entry("i32", 5, little(int32_t{-3})),
      gguf_entry("f32", 6, little(1.5f)),
      gguf_entry("bool", 7, "\1"),
      gguf_entry("text", 8, gguf_text("caf\xc3\xa9")),
      gguf_entry("nested", 9, nested),
      gguf_entry("u64", 10, little(UINT64_MAX)),
      gguf_entry("i64", 11, little(INT64_MIN)),
      gguf_entry("f64", 12, little(0.1)),
      gguf_entry("texts", 9, gguf_texts({"x", "", "yz"})),
      gguf_entry("bools", 9, gguf_array(7, 3, std::string("\1\0\1", 3))),
      gguf_entry("small", 9, gguf_array(1, 2, "\xff\1")),
      gguf_entry("reals", 9, gguf_array(6, 1, little(-2.5f))),
      gguf_entry("none", 9, gguf_array(5, 0, "")),
  };
  for (const uint32_t version : {2u, 3u}) {
    const io::GgufFile file(scratch.write("a", gguf_file(entries, {}, "", 32, version)));
    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(file.metadata().size(), entries.size());
    const std::pair<const char*, int64_t> integers[] = {{"u8", 255},         {"i8", -1},  {"u16", 65535},    {"i16", -2},
                                                        {"u32", 4294967295}, {"i32", -3}, {"i64", INT64_MIN}};
    for (const auto& [key, expected] : integers) EXPECT_EQ(file.integer(key), expected) << key;
    EXPECT_EQ(std::get<uint64_t>(file.value("u64").value), UINT64_MAX);
    EXPECT_EQ(file.real("f32"), 1.5);
    EXPECT_EQ(file.real("f64"), 0.1);
    EXPECT_EQ(file.real("i16"), -2);
    EXPECT_EQ(file.text("text"), "caf\xc3\xa9");
    EXPECT_EQ(file.texts("texts"), (std::vector<std::string>{"x", "", "yz"}));
    EXPECT_TRUE(std::get<bool>(file.value("bool").value));
    EXPECT_EQ(std::get<std::vector<bool>>(file.value("bools").value), (std::vector<bool>{true, false, true}));
    EXPECT_EQ(std::get<std::vector<int64_t>>(file.value("small").value), (std::vector<int64_t>{-1, 1}));
    EXPECT_EQ(std::get<std::vector<double>>(file.value("reals").value), std::vector<double>{-2.5});
    EXPECT_TRUE(std::get<std::vector<int64_t>>(file.value("none").value).empty());
    const auto& lists = std::get<io::GgufValue::List>(file.value("nested").value);
    ASSERT_EQ(lists.size(), 2u);
    EXPECT_EQ(std::get<std::vector<int64_t>>(lists[0].value), std::vector<int64_t>{7});
    EXPECT_EQ(std::get<std::vector<std::string>>(lists[1].value), (std::vector<std::string>{"a", "b"}));
    expect_mentions(io_error_of([&] { file.text("u8"); }), "metadata of the key \"u8\" that are not a text");
    expect_mentions(io_error_of([&] { file.integer("absent"); }), "has no metadata of the key \"absent\"");
    expect_mentions(io_error_of([&] { file.integer("u64"); }), "a number of 2^63 or more as the key \"u64\"");
  }
}

TEST(Gguf, TensorsLieWhereTheAlignmentPutsThem) {
  const Scratch scratch;
  std::string data(72, '\0');
  data.replace(64, 8, little(2.5));
  const std::vector<std::string> tensors = {gguf_tensor("b", {1}, 28, 64), gguf_tensor("a", {2, 1, 3}, 0, 0),
                                            gguf_tensor("scalar", {}, 0, 32)};
  const io::GgufFile file(
      scratch.write("a", gguf_file({gguf_entry("general.alignment", 4, little(uint32_t{8}))}, tensors, data, 8)));
  EXPECT_EQ(file.keys(), (std::vector<std::string>{"b", "a", "scalar"}));
  EXPECT_EQ(file.get("b").to_vector<double>(), std::vector<double>{2.5});
  EXPECT_EQ(file.info("a").shape, (Shape{3, 1, 2}));
  EXPECT_EQ(file.rows("a", 1, 3).shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(file.get("scalar").shape(), Shape{});
  EXPECT_THROW(file.rows("scalar", 0, 0), Error);
  EXPECT_THROW(file.rows("a", 2, 4), Error);
  EXPECT_THROW(file.info("c"), Error);
}

// A type that cannot be decoded can be listed, and its bytes can be read.
TEST(Gguf, TypesThatCannotBeDecodedAreNamed) {
  const Scratch scratch;
  const io::GgufFile file(scratch.write("a", gguf_file({}, {gguf_tensor("x", {256}, 16, 0)}, std::string(66, 'q'))));
  EXPECT_EQ(file.info("x").type, "IQ2_XXS");
  EXPECT_EQ(file.raw("x").size(), 66u);
  try {
    file.get("x");
    ADD_FAILURE() << "IQ2_XXS cannot be decoded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    expect_mentions(error.what(), "has the type IQ2_XXS; these can be read: F32, F16, Q4_0, Q4_1, Q5_0");
  }
}

TEST(Gguf, CodesComeFromQuantisedMatricesAlone) {
  const Scratch scratch;
  const std::vector<std::string> tensors = {gguf_tensor("vector", {32}, 2, 0), gguf_tensor("matrix", {2, 2}, 0, 32)};
  const io::GgufFile file(scratch.write("a", gguf_file({}, tensors, std::string(48, '\0'))));
  for (const auto& [name, words] : {std::pair("vector", "the type Q4_0 and the shape (32,)"),
                                    std::pair("matrix", "the type F32 and the shape (2, 2)")}) {
    try {
      file.quantized(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported);
      expect_mentions(error.what(), words);
      expect_mentions(error.what(), "codes are read from matrices of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K");
    }
  }
}

struct BadGguf {
  const char* name;
  std::string bytes;
  const char* words;
};

std::vector<BadGguf> bad_headers() {
  const auto counts = [](uint64_t tensors, uint64_t entries) {
    return "GGUF" + little(uint32_t{3}) + little(tensors) + little(entries);
  };
  const auto entry = [](uint32_t type, const std::string& value) {
    return gguf_file({gguf_entry("k", type, value)}, {}, "");
  };
  std::string deep = gguf_array(0, 0, "");
  for (int i = 0; i < 100; ++i) deep = gguf_array(9, 1, deep);
  return {
      {"empty", "", "shorter than the 24 bytes"},
      {"another format", std::string(64, 'x'), "does not begin with the letters GGUF"},
      {"version 1", gguf_file({}, {}, "", 32, 1), "version 1; versions 2 and 3 can be read"},
      {"version 4", gguf_file({}, {}, "", 32, 4), "version 4; versions 2 and 3 can be read"},
      {"big-endian", gguf_file({}, {}, "", 32, 0x03000000), "big-endian; convert it"},
      {"many tensors", counts(UINT64_MAX, 0), "it claims 18446744073709551615 tensors"},
      {"many entries", counts(0, uint64_t{1} << 40), "it claims 1099511627776 entries of metadata"},
      {"a long key", counts(0, 1) + little(UINT64_MAX) + std::string(20, 'x'), "a text of 18446744073709551615 bytes"},
      {"a key above the limit", gguf_file({gguf_entry(std::string(65536, 'k'), 7, "\1")}, {}, ""),
       "longer than 65535 bytes"},
      {"a key twice", gguf_file({gguf_entry("k", 7, "\1"), gguf_entry("k", 7, "\1")}, {}, ""), "it has the key \"k\" twice"},
      {"an unknown type", entry(13, ""), "the key \"k\" has the type 13; the format has the types 0 .. 12"},
      {"an array of an unknown type", entry(9, gguf_array(99, 0, "")), "has values of the type 99"},
      {"a bool of 2", entry(7, "\2"), "is 2, neither 0 nor 1"},
      {"a long array", entry(9, gguf_array(4, uint64_t{1} << 62, "1234")),
       "it claims 4611686018427387904 values of the key"},
      {"many texts", entry(9, gguf_array(8, 3, std::string(16, '\0'))), "it claims 3 values of the key \"k\""},
      {"deep arrays", entry(9, deep), "nested more than 4 deep"},
      {"alignment 0", gguf_file({gguf_entry("general.alignment", 4, little(0u))}, {}, ""), "not a power of two"},
      {"alignment 24", gguf_file({gguf_entry("general.alignment", 4, little(24u))}, {}, ""), "not a power of two"},
      {"alignment a text", gguf_file({gguf_entry("general.alignment", 8, gguf_text("32"))}, {}, ""), "not a power of two"},
  };
}

std::vector<BadGguf> bad_tensors() {
  const auto one = [](const std::vector<uint64_t>& extents, uint32_t type, uint64_t offset = 0) {
    return gguf_file({}, {gguf_tensor("x", extents, type, offset)}, std::string(64, '\0'));
  };
  const auto two = [](const std::string& a, const std::string& b) { return gguf_file({}, {a, b}, std::string(64, '\0')); };
  return {
      {"an unknown type", one({1}, 5),
       "tensor \"x\" has the type 5, which ggml does not use; these can be read: F32, F16, "},
      {"rank 9", one(std::vector<uint64_t>(9, 1), 0), "has 9 dimensions"},
      {"an extent of 2^63", one({uint64_t{1} << 63}, 0), "an extent of 2^63 or more"},
      {"a size that wraps", one({uint64_t{1} << 62, 4}, 0), "takes more than 2^63 bytes"},
      {"a size that wraps behind 0", one({0, uint64_t{1} << 62, 4}, 0), "takes more than 2^63 bytes"},
      {"half a block", one({16}, 2), "rows of 16 elements, but a block of type Q4_0 has 32"},
      {"a scalar of blocks", one({}, 12), "rows of 1 elements, but a block of type Q4_K has 256"},
      {"beyond the file", one({17}, 0), "takes 68 bytes from byte 0 of the data on, but there are 64"},
      {"an offset beyond", one({1}, 0, 96), "but there are 64"},
      {"an offset of 2^64 - 32", one({8}, 0, UINT64_MAX - 31), "but there are 64"},
      {"unaligned", one({1}, 0, 4), "begins at byte 4 of the data, which is not a multiple of 32"},
      {"an overlap", two(gguf_tensor("a", {9}, 0, 0), gguf_tensor("b", {1}, 0, 32)), "\"b\" overlaps the one before it"},
      {"the same bytes", two(gguf_tensor("a", {1}, 0, 0), gguf_tensor("b", {1}, 0, 0)), "overlaps the one before it"},
      {"a name twice", two(gguf_tensor("a", {1}, 0, 0), gguf_tensor("a", {1}, 0, 32)), "the tensor \"a\" twice"},
  };
}

TEST(Gguf, MalformedFilesAreRefusedWithTheReason) {
  const Scratch scratch;
  std::vector<BadGguf> rows = bad_headers();
  for (BadGguf& row : bad_tensors()) rows.push_back(std::move(row));
  for (const BadGguf& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string path = scratch.write("file", row.bytes);
    const std::string message = io_error_of([&] { io::GgufFile{path}; });
    expect_mentions(message, row.words);
    expect_mentions(message, "[" + path + "]");
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_LT(message.size(), 1000u);
  }
}

std::string small_file() {
  return gguf_file({gguf_entry("k", 9, gguf_texts({"a", "bc"})), gguf_entry("n", 9, gguf_array(4, 2, little(uint64_t{5}))),
                    gguf_entry("general.alignment", 4, little(32u))},
                   {gguf_tensor("x", {32, 2}, 2, 0), gguf_tensor("y", {3}, 0, 64)}, std::string(76, '\7'));
}

TEST(Gguf, EveryTruncationIsRefused) {
  const Scratch scratch;
  const std::string bytes = small_file();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(io::GgufFile{scratch.write("cut", bytes.substr(0, size))}, Error) << size;
  }
}

TEST(Gguf, DamagedBytesAreRefusedOrConsistent) {
  const Scratch scratch;
  const std::string bytes = small_file();
  const size_t refused = count_refused(scratch, bytes, 600, [](const std::string& path) {
    const io::GgufFile file(path);
    for (const std::string& name : file.keys()) EXPECT_GE(file.get(name).count(), 0);
  });
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace plugrad::test
