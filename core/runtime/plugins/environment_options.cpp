#include <core/runtime/plugins/environment_options.hpp>

#include <core/runtime/plugins/platform.hpp>
#include <core/runtime/split.hpp>
#include <plugrad/runtime/error.hpp>

#include <cctype>

namespace plugrad {

std::map<std::string, std::string> environment_options(const std::string& name, const char* where) {
  std::map<std::string, std::string> options;
  std::string variable = "PLUGRAD_" + name + "_OPTIONS";
  for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const char* text = platform::environment(variable.c_str());
  if (!text) return options;
  for (const std::string& item : split(text, ',')) {
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    if (equals == std::string::npos || !equals)
      throw Error(Code::invalid, std::string("[") + where + "] " + variable + ": '" + item + "': key=value expected");
    options[item.substr(0, equals)] = item.substr(equals + 1);
  }
  return options;
}

}  // namespace plugrad
