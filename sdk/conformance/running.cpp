#include <sdk/conformance/running.hpp>

namespace plugrad::conformance {
namespace {
std::function<void(const std::string&)>& listener() {
  static std::function<void(const std::string&)> known;
  return known;
}
}  // namespace

void note_running(const std::string& what) {
  if (listener()) listener()(what);
}

void on_running(std::function<void(const std::string&)> wanted) { listener() = std::move(wanted); }

}  // namespace plugrad::conformance
