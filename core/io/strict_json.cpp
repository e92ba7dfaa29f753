#include <core/io/strict_json.hpp>

#include <core/io/quote.hpp>

#include <set>
#include <vector>

namespace plugrad::io {
namespace {

using Json = nlohmann::json;
using Fail = std::function<void(const std::string&)>;

// Checks faults accepted by the parser: deep nesting, and repeated keys of an object. The parser's own callback would take
// quadratic time, as it looks through an object after each of its values.
class Checker final : public nlohmann::json_sax<Json> {
 public:
  Checker(int depth, const Fail& fail) : depth_(depth), fail_(fail) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) fail_("has the key " + io::quote(name) + " twice");
    return value();
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;  // the parser of the values reports the fault
  }

 private:
  bool value() {
    if (static_cast<int>(keys_.size()) > depth_) fail_("is nested too deeply");
    return true;
  }
  bool open() {
    value();
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  int depth_;
  const Fail& fail_;
  std::vector<std::set<std::string>> keys_;  // of each open object and array
};

}  // namespace

void Document::empty(nlohmann::json& value) noexcept {
  if (!value.is_structured()) return;
  for (nlohmann::json& each : value) empty(each);
  value.clear();
}

std::string json_text(const std::string& text) { return Json(text).dump(); }
std::string json_text(const Shape& numbers) {
  std::string all = "[";
  for (const int64_t each : numbers) all += (all.size() > 1 ? "," : "") + std::to_string(each);
  return all + "]";
}

// The parser stops silently at a zero byte and keeps the last of equal keys, so both are checked here.
Document parse_strictly(const std::string& text, int depth, const Fail& fail) {
  if (text.find('\0') != std::string::npos) fail("has a zero byte");
  Checker checker(depth, fail);
  try {
    Json::sax_parse(text, &checker);
    return Document(Json::parse(text));
  } catch (const Json::parse_error& error) {
    fail("is not JSON in UTF-8 (byte " + std::to_string(error.byte) + ")");
  } catch (const Json::exception&) {
    fail("has a number that does not fit into 64 bits");
  }
  return Document({});
}

}  // namespace plugrad::io
