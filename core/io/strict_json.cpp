#include <core/io/strict_json.hpp>

#include <core/io/quoted.hpp>

#include <set>
#include <vector>

namespace plugrad::io {

// The parser stops silently at a zero byte and keeps the last of equal keys, so both are checked here.
nlohmann::json parse_strictly(const std::string& text, int depth, const std::function<void(const std::string&)>& fail) {
  using Json = nlohmann::json;
  if (text.find('\0') != std::string::npos) fail("has a zero byte");
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int at, Json::parse_event_t event, const Json& value) {
    if (at > depth) fail("is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      fail("has the key " + quoted(value.get<std::string>()) + " twice");
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    fail("is not JSON in UTF-8 (byte " + std::to_string(error.byte) + ")");
  } catch (const Json::exception&) {
    fail("has a number that does not fit into 64 bits");
  }
  return {};
}

}  // namespace plugrad::io
