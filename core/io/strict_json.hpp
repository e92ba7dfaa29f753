// JSON of files that may be hostile.
#pragma once
#include <plugrad/tensor/shape.hpp>

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <utility>

namespace plugrad::io {

// A document whose destructor allocates nothing. The destructor of nlohmann::json allocates for objects and arrays, and
// ends the process if memory is short.
class Document {
 public:
  explicit Document(nlohmann::json root) : root_(std::move(root)) {}
  ~Document() { empty(root_); }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  const nlohmann::json& root() const { return root_; }

 private:
  // Empties values from the inside, so that only empty ones are destroyed.
  static void empty(nlohmann::json& value) noexcept;
  nlohmann::json root_;
};

// The text of a JSON string, with its quotes. Throws nlohmann::json::exception for what is not UTF-8.
std::string json_text(const std::string& text);
// "[1,2]"
std::string json_text(const Shape& numbers);

// Parses a text whose objects and arrays are nested at most `depth` deep. It calls `fail`, which must throw, with what is
// wrong: no JSON in UTF-8, zero bytes, keys that occur twice, deeper nesting, or numbers that do not fit into 64 bits.
Document parse_strictly(const std::string& text, int depth, const std::function<void(const std::string&)>& fail);

}  // namespace plugrad::io
