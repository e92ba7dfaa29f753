#include <core/io/ggml_types.hpp>

#include <plugrad/sdk/halves.hpp>

#include <cstring>

namespace plugrad::io {
namespace {

constexpr int kSmall = 32;                      // elements of a block of the types Q4_0 .. Q8_0
constexpr int kLarge = 256;                     // elements of a block of the types with names in _K
constexpr int kMostGroups = 16, kMiddle = 128;  // of a block; the code of 0 in 8 bits

template <class T> T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
float half(const uint8_t* bytes) { return load<Float16>(bytes); }

// Bit j of the word is the fifth bit of element j of the block.
int fifth_bit(uint32_t word, int j) { return static_cast<int>(word >> j & 1) << 4; }
uint8_t code(int number) { return static_cast<uint8_t>(number); }

// Byte j holds the elements j and j + 16.
void read_nibbles(const uint8_t* bytes, uint8_t* codes) {
  for (int j = 0; j < kSmall / 2; ++j) {
    codes[j] = bytes[j] & 15;
    codes[j + kSmall / 2] = bytes[j] >> 4;
  }
}
void add_fifth_bits(uint32_t word, uint8_t* codes) {
  for (int j = 0; j < kSmall; ++j) codes[j] = code(codes[j] | fifth_bit(word, j));
}

// x = d * (q - 8)
void read_q4_0(const uint8_t* block, uint8_t* codes, float* scales, float*) {
  scales[0] = half(block);
  read_nibbles(block + 2, codes);
}

// x = d * q + m
void read_q4_1(const uint8_t* block, uint8_t* codes, float* scales, float* minima) {
  scales[0] = half(block), minima[0] = half(block + 2);
  read_nibbles(block + 4, codes);
}

// x = d * (q - 16)
void read_q5_0(const uint8_t* block, uint8_t* codes, float* scales, float*) {
  scales[0] = half(block);
  read_nibbles(block + 6, codes);
  add_fifth_bits(load<uint32_t>(block + 2), codes);
  for (int j = 0; j < kSmall; ++j) codes[j] = code(codes[j] - 16 + kMiddle);
}

// x = d * q + m
void read_q5_1(const uint8_t* block, uint8_t* codes, float* scales, float* minima) {
  scales[0] = half(block), minima[0] = half(block + 2);
  read_nibbles(block + 8, codes);
  add_fifth_bits(load<uint32_t>(block + 4), codes);
}

// x = d * q
void read_q8_0(const uint8_t* block, uint8_t* codes, float* scales, float*) {
  scales[0] = half(block);
  for (int j = 0; j < kSmall; ++j) codes[j] = code(static_cast<int8_t>(block[2 + j]) + kMiddle);
}

// Q2_K to Q6_K divide their 256 elements alike: of each 128 elements, 32 bytes hold the two bits of four groups of 32.
int two_bits(const uint8_t* bytes, int at) { return bytes[at / 128 * 32 + at % 32] >> at % 128 / 32 * 2 & 3; }

// x = d * scale * q - m * offset, with a scale and an offset of 4 bits each in one byte for every 16 elements.
void read_q2_k(const uint8_t* block, uint8_t* codes, float* scales, float* minima) {
  const float d = half(block + 80), m = half(block + 82);
  for (int group = 0; group < 16; ++group) {
    scales[group] = d * static_cast<float>(block[group] & 15);
    minima[group] = -(m * static_cast<float>(block[group] >> 4));
  }
  for (int at = 0; at < kLarge; ++at) codes[at] = code(two_bits(block + 16, at));
}

// x = d * (scale - 32) * (q - 4), with a scale of 6 bits for every 16 elements: 4 bits in the halves of the first 8 of 12
// bytes, and 2 bits in the last 4. The third bit of q is bit `group of 32` of byte j.
void read_q3_k(const uint8_t* block, uint8_t* codes, float* scales, float*) {
  const uint8_t *high = block, *low = block + 32, *packed = block + 96;
  const float d = half(block + 108);
  for (int group = 0; group < 16; ++group) {
    const int lower = packed[group % 8] >> group / 8 * 4 & 15, upper = packed[8 + group % 4] >> group / 4 * 2 & 3;
    scales[group] = d * static_cast<float>((lower | upper << 4) - 32);
  }
  for (int at = 0; at < kLarge; ++at) {
    const int third = high[at % 32] >> at / 32 & 1;
    codes[at] = code((two_bits(low, at) | third << 2) - 4 + 8);
  }
}

// Q4_K and Q5_K have a scale and an offset of 6 bits each for every 32 elements, in 12 bytes. The first four groups are in
// the lower 6 bits of the bytes 0 .. 7. The last four groups have 4 bits in the bytes 8 .. 11, and 2 bits above the first
// groups' bits.
void read_scales(const uint8_t* block, float* scales, float* minima) {
  const float d = half(block), m = half(block + 2);
  const uint8_t* packed = block + 4;
  for (int group = 0; group < 8; ++group) {
    const bool first = group < 4;
    const int scale = first ? packed[group] & 63 : (packed[group + 4] & 15) | (packed[group - 4] >> 6 << 4);
    const int offset = first ? packed[group + 4] & 63 : (packed[group + 4] >> 4) | (packed[group] >> 6 << 4);
    scales[group] = d * static_cast<float>(scale);
    minima[group] = -(m * static_cast<float>(offset));
  }
}

// x = d * scale * q - m * offset. 32 bytes hold two groups: the first in their lower halves, the next in their upper halves.
void read_q4_k(const uint8_t* block, uint8_t* codes, float* scales, float* minima) {
  read_scales(block, scales, minima);
  for (int at = 0; at < kLarge; ++at) codes[at] = block[16 + at / 64 * 32 + at % 32] >> at / 32 % 2 * 4 & 15;
}

// As Q4_K, with a fifth bit: bit `group` of byte j.
void read_q5_k(const uint8_t* block, uint8_t* codes, float* scales, float* minima) {
  read_scales(block, scales, minima);
  const uint8_t *high = block + 16, *low = block + 48;
  for (int at = 0; at < kLarge; ++at)
    codes[at] = code((low[at / 64 * 32 + at % 32] >> at / 32 % 2 * 4 & 15) | (high[at % 32] >> at / 32 & 1) << 4);
}

// x = d * scale * (q - 32), with a scale for every 16 elements. Of each 128 elements, 64 bytes hold the lower 4 bits.
void read_q6_k(const uint8_t* block, uint8_t* codes, float* scales, float*) {
  const uint8_t *low = block, *high = block + 128;
  const float d = half(block + 208);
  for (int group = 0; group < 16; ++group) scales[group] = d * static_cast<float>(static_cast<int8_t>(block[192 + group]));
  for (int at = 0; at < kLarge; ++at) {
    const int lower = low[at / 128 * 64 + at / 32 % 2 * 32 + at % 32] >> at % 128 / 64 * 4 & 15;
    codes[at] = code((lower | two_bits(high, at) << 4) - 32 + kMiddle);
  }
}

constexpr std::nullopt_t kNone = std::nullopt;

// Types without codes have their size here, so that a program can list them and read their bytes. Five and six bits become
// codes of eight bits, and three bits codes of four.
constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4, DType::f32, {}},
    {1, "F16", 1, 2, DType::f16, {}},
    {2, "Q4_0", kSmall, 18, kNone, {4, 32, false, DType::f16, read_q4_0}},
    {3, "Q4_1", kSmall, 20, kNone, {4, 32, true, DType::f16, read_q4_1}},
    {6, "Q5_0", kSmall, 22, kNone, {8, 32, false, DType::f16, read_q5_0}},
    {7, "Q5_1", kSmall, 24, kNone, {8, 32, true, DType::f16, read_q5_1}},
    {8, "Q8_0", kSmall, 34, kNone, {8, 32, false, DType::f16, read_q8_0}},
    {9, "Q8_1", kSmall, 36, kNone, {}},
    {10, "Q2_K", kLarge, 84, kNone, {2, 16, true, DType::f32, read_q2_k}},
    {11, "Q3_K", kLarge, 110, kNone, {4, 16, false, DType::f32, read_q3_k}},
    {12, "Q4_K", kLarge, 144, kNone, {4, 32, true, DType::f32, read_q4_k}},
    {13, "Q5_K", kLarge, 176, kNone, {8, 32, true, DType::f32, read_q5_k}},
    {14, "Q6_K", kLarge, 210, kNone, {8, 16, false, DType::f32, read_q6_k}},
    {15, "Q8_K", kLarge, 292, kNone, {}},
    {16, "IQ2_XXS", kLarge, 66, kNone, {}},
    {17, "IQ2_XS", kLarge, 74, kNone, {}},
    {18, "IQ3_XXS", kLarge, 98, kNone, {}},
    {19, "IQ1_S", kLarge, 50, kNone, {}},
    {20, "IQ4_NL", kSmall, 18, kNone, {}},
    {21, "IQ3_S", kLarge, 110, kNone, {}},
    {22, "IQ2_S", kLarge, 82, kNone, {}},
    {23, "IQ4_XS", kLarge, 136, kNone, {}},
    {24, "I8", 1, 1, DType::i8, {}},
    {25, "I16", 1, 2, DType::i16, {}},
    {26, "I32", 1, 4, DType::i32, {}},
    {27, "I64", 1, 8, DType::i64, {}},
    {28, "F64", 1, 8, DType::f64, {}},
    {29, "IQ1_M", kLarge, 56, kNone, {}},
    {30, "BF16", 1, 2, DType::bf16, {}},
    {34, "TQ1_0", kLarge, 54, kNone, {}},
    {35, "TQ2_0", kLarge, 66, kNone, {}},
    {39, "MXFP4", kSmall, 17, kNone, {}},
    {40, "NVFP4", 64, 36, kNone, {}},
    {41, "Q1_0", 128, 18, kNone, {}},
};

std::string names_of(bool (*listed)(const GgmlType&)) {
  std::string names;
  for (const GgmlType& type : kTypes)
    if (listed(type)) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

}  // namespace

void decode(const GgmlType& type, const uint8_t* block, float* out) {
  uint8_t codes[kLarge];
  float scales[kMostGroups], minima[kMostGroups];
  type.codes.read(block, codes, scales, minima);
  const int middle = type.codes.has_minima ? 0 : 1 << (type.codes.bits - 1);
  for (int64_t j = 0; j < type.block; ++j) {
    const float product = scales[j / type.codes.group] * static_cast<float>(codes[j] - middle);
    out[j] = type.codes.has_minima ? product + minima[j / type.codes.group] : product;
  }
}

void split(const GgmlType& type, const uint8_t* block, uint8_t* codes, float* scales) {
  uint8_t each[kLarge];
  float all[kMostGroups], minima[kMostGroups];
  type.codes.read(block, each, all, minima);
  const int bits = type.codes.bits, per = 8 / bits;
  for (int64_t byte = 0; byte < type.block / per; ++byte) {
    int packed = 0;
    for (int i = 0; i < per; ++i) packed |= each[byte * per + i] << i * bits;
    codes[byte] = code(packed);
  }
  for (int64_t g = 0; g < type.block / type.codes.group; ++g) {
    *scales++ = all[g];
    if (type.codes.has_minima) *scales++ = minima[g];
  }
}

const GgmlType* ggml_type(uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

const GgmlType& ggml_type(const std::string& name) {
  const GgmlType* found = kTypes;
  for (const GgmlType& type : kTypes) {
    if (name == type.name) found = &type;
  }
  return *found;
}

std::string readable_ggml_types() {
  return names_of([](const GgmlType& type) { return type.readable(); });
}
std::string quantized_ggml_types() {
  return names_of([](const GgmlType& type) { return type.codes.bits != 0; });
}

}  // namespace plugrad::io
