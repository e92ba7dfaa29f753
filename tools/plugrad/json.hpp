// JSON for commands to print and read. Only json.cpp includes the library behind it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::tool {

// Thrown for invalid JSON text, and for a value of an unexpected kind.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An immutable value, so copies share it. Objects keep the order of their members.
class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json(std::nullptr_t);
  Json(bool value);
  Json(int value);
  Json(int64_t value);
  Json(uint32_t value);
  Json(uint64_t value);
  Json(double value);  // printed as null if it is not finite
  Json(const char* text);
  Json(const std::string& text);
  Json(const std::vector<int64_t>& numbers);
  Json(const std::vector<std::string>& texts);
  Json(const std::vector<Json>& values);
  static Json object(const std::vector<Member>& members);
  // Throws JsonError.
  static Json parse(const std::string& text);

  // Returns the text in lines, indented by two spaces. U+FFFD replaces invalid bytes of UTF-8.
  std::string pretty() const;
  // Returns the text on one line. Throws JsonError for invalid bytes of UTF-8.
  std::string compact() const;

  bool is_array() const;
  bool is_object() const;
  bool contains(const std::string& name) const;  // false if this is not an object
  // Returns the member of an object. Throws JsonError without such a member.
  Json at(const std::string& name) const;
  // Returns the values of an array or an object.
  std::vector<Json> elements() const;
  // T is bool, double, int64_t, uint64_t, std::string or std::vector<int64_t>. Throws JsonError for a value of another kind.
  template <class T> T as() const;
  // Returns the value of a member of an object as T, or `otherwise` without such a member.
  template <class T> T value(const std::string& name, const T& otherwise) const {
    return contains(name) ? at(name).as<T>() : otherwise;
  }

 private:
  explicit Json(std::shared_ptr<const void> tree) : tree_(std::move(tree)) {}

  std::shared_ptr<const void> tree_;
};

}  // namespace plugrad::tool
