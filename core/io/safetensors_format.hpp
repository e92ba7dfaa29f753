// Names and limits of the format, shared by reader and writer.
#pragma once
#include <core/io/opened_file.hpp>
#include <plugrad/io/safetensors.hpp>

#include <cstdint>
#include <string_view>

namespace plugrad::io {

inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr uint64_t kLengthBytes = 8;               // little-endian, before the header
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library

// As read_safetensors_header, for an open file.
SafetensorsHeader read_header(const OpenedFile& file);

}  // namespace plugrad::io
