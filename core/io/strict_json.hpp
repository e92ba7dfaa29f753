// JSON of files that may be hostile.
#pragma once
#include <nlohmann/json.hpp>

#include <functional>
#include <string>

namespace plugrad::io {

// Parses a text whose objects and arrays are nested at most `depth` deep. It calls `fail`, which must throw, with what is
// wrong: no JSON in UTF-8, zero bytes, keys that occur twice, deeper nesting, or numbers that do not fit into 64 bits.
nlohmann::json parse_strictly(const std::string& text, int depth, const std::function<void(const std::string&)>& fail);

}  // namespace plugrad::io
