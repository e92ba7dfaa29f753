#include <core/io/ggml_types.hpp>

#include <plugrad/sdk/halves.hpp>

#include <cstring>

namespace plugrad::io {
namespace {

constexpr int kSmall = 32;   // elements of a block of the types Q4_0 .. Q8_0
constexpr int kLarge = 256;  // elements of a block of the types with names in _K

template <class T> T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
float half(const uint8_t* bytes) { return load<Float16>(bytes); }

// Bit j of the word is the fifth bit of element j of the block.
int fifth_bit(uint32_t word, int j) { return static_cast<int>(word >> j & 1) << 4; }

// x = d * (q - 8). Byte j holds the elements j and j + 16.
void decode_q4_0(const uint8_t* block, float* out) {
  const float d = half(block);
  for (int j = 0; j < kSmall / 2; ++j) {
    out[j] = static_cast<float>((block[2 + j] & 15) - 8) * d;
    out[j + kSmall / 2] = static_cast<float>((block[2 + j] >> 4) - 8) * d;
  }
}

// x = d * q + m
void decode_q4_1(const uint8_t* block, float* out) {
  const float d = half(block), m = half(block + 2);
  for (int j = 0; j < kSmall / 2; ++j) {
    out[j] = static_cast<float>(block[4 + j] & 15) * d + m;
    out[j + kSmall / 2] = static_cast<float>(block[4 + j] >> 4) * d + m;
  }
}

// x = d * (q - 16)
void decode_q5_0(const uint8_t* block, float* out) {
  const float d = half(block);
  const uint32_t high = load<uint32_t>(block + 2);
  for (int j = 0; j < kSmall / 2; ++j) {
    out[j] = static_cast<float>(((block[6 + j] & 15) | fifth_bit(high, j)) - 16) * d;
    out[j + kSmall / 2] = static_cast<float>(((block[6 + j] >> 4) | fifth_bit(high, j + kSmall / 2)) - 16) * d;
  }
}

// x = d * q + m
void decode_q5_1(const uint8_t* block, float* out) {
  const float d = half(block), m = half(block + 2);
  const uint32_t high = load<uint32_t>(block + 4);
  for (int j = 0; j < kSmall / 2; ++j) {
    out[j] = static_cast<float>((block[8 + j] & 15) | fifth_bit(high, j)) * d + m;
    out[j + kSmall / 2] = static_cast<float>((block[8 + j] >> 4) | fifth_bit(high, j + kSmall / 2)) * d + m;
  }
}

// x = d * q
void decode_q8_0(const uint8_t* block, float* out) {
  const float d = half(block);
  for (int j = 0; j < kSmall; ++j) out[j] = static_cast<float>(static_cast<int8_t>(block[2 + j])) * d;
}

struct Scale {
  float d, m;
};

// Q4_K and Q5_K have a scale and an offset of 6 bits each for every 32 elements, in 12 bytes. The first four groups are in
// the lower 6 bits of the bytes 0 .. 7. The last four groups have 4 bits in the bytes 8 .. 11, and 2 bits above the first
// groups' bits.
Scale scale_of(const uint8_t* packed, int group, float d, float m) {
  if (group < 4) return {d * static_cast<float>(packed[group] & 63), m * static_cast<float>(packed[group + 4] & 63)};
  const int scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6 << 4);
  const int offset = (packed[group + 4] >> 4) | (packed[group] >> 6 << 4);
  return {d * static_cast<float>(scale), m * static_cast<float>(offset)};
}

// x = d * scale * q - m * offset. 32 bytes hold two groups: the first in their lower halves, the next in their upper halves.
void decode_q4_k(const uint8_t* block, float* out) {
  const float d = half(block), m = half(block + 2);
  const uint8_t* low = block + 16;
  for (int group = 0; group < kLarge / 32; ++group) {
    const Scale scale = scale_of(block + 4, group, d, m);
    const uint8_t* bytes = low + group / 2 * 32;
    for (int j = 0; j < 32; ++j) *out++ = scale.d * static_cast<float>(bytes[j] >> group % 2 * 4 & 15) - scale.m;
  }
}

// As Q4_K, with a fifth bit: bit `group` of byte j.
void decode_q5_k(const uint8_t* block, float* out) {
  const float d = half(block), m = half(block + 2);
  const uint8_t *high = block + 16, *low = block + 48;
  for (int group = 0; group < kLarge / 32; ++group) {
    const Scale scale = scale_of(block + 4, group, d, m);
    const uint8_t* bytes = low + group / 2 * 32;
    for (int j = 0; j < 32; ++j) {
      const int q = (bytes[j] >> group % 2 * 4 & 15) | (high[j] >> group & 1) << 4;
      *out++ = scale.d * static_cast<float>(q) - scale.m;
    }
  }
}

// x = d * scale * (q - 32), with a scale for every 16 elements. Of each 128 elements, 64 bytes hold the lower 4 bits and 32
// bytes the upper 2 bits, in four groups of 32.
void decode_q6_k(const uint8_t* block, float* out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const float d = half(block + 208);
  for (int at = 0; at < kLarge; ++at) {
    const int part = at / 128, group = at % 128 / 32, j = at % 32;
    const int lower = low[part * 64 + group % 2 * 32 + j] >> group / 2 * 4 & 15;
    const int upper = high[part * 32 + j] >> group * 2 & 3;
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[at / 16]));
    out[at] = scale * static_cast<float>((lower | upper << 4) - 32);
  }
}

constexpr std::nullopt_t kNone = std::nullopt;

// Types without a decoder have their size here, so that a program can list them and read their bytes.
constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4, DType::f32, nullptr},         {1, "F16", 1, 2, DType::f16, nullptr},
    {2, "Q4_0", kSmall, 18, kNone, decode_q4_0},   {3, "Q4_1", kSmall, 20, kNone, decode_q4_1},
    {6, "Q5_0", kSmall, 22, kNone, decode_q5_0},   {7, "Q5_1", kSmall, 24, kNone, decode_q5_1},
    {8, "Q8_0", kSmall, 34, kNone, decode_q8_0},   {9, "Q8_1", kSmall, 36, kNone, nullptr},
    {10, "Q2_K", kLarge, 84, kNone, nullptr},      {11, "Q3_K", kLarge, 110, kNone, nullptr},
    {12, "Q4_K", kLarge, 144, kNone, decode_q4_k}, {13, "Q5_K", kLarge, 176, kNone, decode_q5_k},
    {14, "Q6_K", kLarge, 210, kNone, decode_q6_k}, {15, "Q8_K", kLarge, 292, kNone, nullptr},
    {16, "IQ2_XXS", kLarge, 66, kNone, nullptr},   {17, "IQ2_XS", kLarge, 74, kNone, nullptr},
    {18, "IQ3_XXS", kLarge, 98, kNone, nullptr},   {19, "IQ1_S", kLarge, 50, kNone, nullptr},
    {20, "IQ4_NL", kSmall, 18, kNone, nullptr},    {21, "IQ3_S", kLarge, 110, kNone, nullptr},
    {22, "IQ2_S", kLarge, 82, kNone, nullptr},     {23, "IQ4_XS", kLarge, 136, kNone, nullptr},
    {24, "I8", 1, 1, DType::i8, nullptr},          {25, "I16", 1, 2, DType::i16, nullptr},
    {26, "I32", 1, 4, DType::i32, nullptr},        {27, "I64", 1, 8, DType::i64, nullptr},
    {28, "F64", 1, 8, DType::f64, nullptr},        {29, "IQ1_M", kLarge, 56, kNone, nullptr},
    {30, "BF16", 1, 2, DType::bf16, nullptr},      {34, "TQ1_0", kLarge, 54, kNone, nullptr},
    {35, "TQ2_0", kLarge, 66, kNone, nullptr},     {39, "MXFP4", kSmall, 17, kNone, nullptr},
    {40, "NVFP4", 64, 36, kNone, nullptr},         {41, "Q1_0", 128, 18, kNone, nullptr},
};

}  // namespace

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
  std::string names;
  for (const GgmlType& type : kTypes) {
    if (type.readable()) names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return names;
}

}  // namespace plugrad::io
