#include <core/io/quote.hpp>

#include <nlohmann/json.hpp>

namespace plugrad::io {

std::string quote(const std::string& name) {
  using Json = nlohmann::json;
  constexpr size_t kMost = 80;
  std::string text = Json(name.substr(0, kMost)).dump(-1, ' ', true, Json::error_handler_t::replace);
  return name.size() > kMost ? text + "..." : text;
}

}  // namespace plugrad::io
