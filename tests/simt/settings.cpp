#include <simt/control.hpp>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace simt {
namespace {
struct Key {
  const char* name;
  uint64_t Settings::* member;
};
constexpr Key kKeys[] = {
    {"devices", &Settings::devices},
    {"driver", &Settings::driver},
    {"runtime", &Settings::runtime},
    {"capability", &Settings::capability},
    {"memory", &Settings::memory},
    {"multiprocessors", &Settings::multiprocessors},
    {"schedules", &Settings::schedules},
    {"repeats", &Settings::repeats},
    {"seed", &Settings::seed},
    {"late", &Settings::late},
    {"malloc_fails", &Settings::malloc_fails},
    {"launch_refused", &Settings::launch_refused},
    {"launch_faults", &Settings::launch_faults},
};

void read_one(const std::string& item, Settings& into) {
  const size_t equals = item.find('=');
  std::string known;
  for (const Key& key : kKeys) {
    known += std::string(" ") + key.name;
    if (item.substr(0, equals) != key.name || equals == std::string::npos) continue;
    char* end = nullptr;
    into.*key.member = std::strtoull(item.c_str() + equals + 1, &end, 10);
    if (end == item.c_str() + equals + 1 || *end)
      throw std::invalid_argument("PLUGRAD_SIMT: '" + item + "' needs a number after '='");
    return;
  }
  throw std::invalid_argument("PLUGRAD_SIMT: '" + item + "' is not KEY=NUMBER; keys:" + known);
}

Settings first_settings() {
  Settings read;
  if (const char* text = std::getenv("PLUGRAD_SIMT")) read_settings(text, read);
  if (!read.devices && read.driver == Settings{}.driver) read.driver = 0;  // a machine without a GPU also has no driver
  return read;
}
}  // namespace

void read_settings(const std::string& text, Settings& into) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (end > at) read_one(text.substr(at, end - at), into);
    at = end + 1;
  }
}

Settings& settings() {
  static auto* all = new Settings(first_settings());
  return *all;
}

}  // namespace simt
