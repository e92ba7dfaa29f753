#include <tools/plugrad/options.hpp>

#include <algorithm>
#include <iostream>
#include <numeric>

namespace plugrad::tool {
namespace po = boost::program_options;
namespace {

// The Levenshtein distance.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t replaced = diagonal + (a[i] != b[k]);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, row[k] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::vector<std::string> long_names(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  const auto closest = std::ranges::min_element(names, {}, [&](const std::string& name) { return distance(word, name); });
  if (closest == names.end()) return "";
  const size_t allowed = std::max<size_t>(2, word.size() / 3);
  const bool begins = word.size() >= 4 && closest->starts_with(word);
  if (distance(word, *closest) > allowed && !begins) return "";
  return "; did you mean '" + *closest + "'?";
}

std::string one_line(std::string_view text) {
  std::string line;
  bool broken = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      broken = !line.empty();
    } else if (!(broken && c == ' ')) {
      if (std::exchange(broken, false)) line += line.back() == ':' ? " " : "; ";
      const auto byte = static_cast<unsigned char>(c);
      const bool control = !line.empty() && line.back() == '\xc2' && byte >= 0x80 && byte < 0xa0;  // U+0080 .. U+009F
      if (control) line.pop_back();
      line += control || byte < 0x20 || byte == 0x7f ? '?' : c;
    }
  }
  return line;
}

po::options_description with_common(const po::options_description& own) {
  constexpr unsigned kLine = 110;
  po::options_description all("options", kLine, kLine / 2);
  for (const auto& option : own.options()) all.add(option);
  all.add_options()("json", po::bool_switch(), "print one JSON object to stdout; everything else goes to stderr");
  all.add_options()("help,h", po::bool_switch(), "print this text");
  return all;
}

po::variables_map parse_options(const std::string& command, const Arguments& arguments,
                                const po::options_description& options) {
  const std::string see = " (see " + command + " --help)";
  try {
    // No abbreviations: --e could mean --epochs today and another option tomorrow.
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto parsed = po::command_line_parser(arguments).options(options).style(style).run();
    for (const auto& option : parsed.options) {
      if (option.position_key >= 0) throw UsageError("unexpected argument '" + option.original_tokens.at(0) + "'" + see);
    }
    po::variables_map values;
    po::store(parsed, values);
    po::notify(values);
    return values;
  } catch (const po::unknown_option& error) {
    const std::string& name = error.get_option_name();
    throw UsageError("unknown option '" + name + "'" + suggestion(name, long_names(options)) + see);
  } catch (const po::error& error) {
    throw UsageError(error.what() + see);
  }
}

void print_help(const Usage& usage, const po::options_description& options) {
  std::cout << "usage: " << usage.line << "\n\n" << usage.summary << "\n\n" << options << "\nexamples:\n" << usage.examples;
}

}  // namespace plugrad::tool
