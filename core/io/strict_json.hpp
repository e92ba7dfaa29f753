// JSON of possibly hostile files.
#pragma once
#include <plugrad/tensor/shape.hpp>

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <utility>

namespace plugrad::io {

// A document with a destructor that allocates nothing. The destructor of nlohmann::json allocates for objects and arrays,
// and ends the process if memory is short.
class Document {
 public:
  explicit Document(nlohmann::json root) : root_(std::move(root)) {}
  ~Document() { empty(root_); }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  const nlohmann::json& root() const { return root_; }

 private:
  // Empties values from the inside, so that only empty values are destroyed.
  static void empty(nlohmann::json& value) noexcept;
  nlohmann::json root_;
};

// Returns the text of a JSON string, with its quotes. Throws nlohmann::json::exception for invalid UTF-8.
std::string json_text(const std::string& text);
// "[1,2]"
std::string json_text(const Shape& numbers);

// Parses a text with objects and arrays nested at most `depth` deep. It calls `fail` with the fault: no JSON in UTF-8, zero
// bytes, repeated keys, deeper nesting, or numbers too large for 64 bits. `fail` must throw.
Document parse_strictly(const std::string& text, int depth, const std::function<void(const std::string&)>& fail);

}  // namespace plugrad::io
