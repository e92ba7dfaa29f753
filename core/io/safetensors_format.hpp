// Names and limits of the format, shared by reader and writer.
#pragma once
#include <plugrad/tensor/dtype.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace plugrad::io {

inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr uint64_t kLengthBytes = 8;               // little-endian, before the header
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library

}  // namespace plugrad::io
