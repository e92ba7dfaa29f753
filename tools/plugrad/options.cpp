#include <tools/plugrad/options.hpp>

#include <boost/program_options.hpp>

#include <algorithm>
#include <iostream>
#include <numeric>

namespace plugrad::tool {
namespace po = boost::program_options;
namespace {

constexpr unsigned kLine = 110;

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

struct Options::Parser {
  po::options_description options{"options", kLine, kLine / 2};
  po::variables_map values;

  template <class T>
  void add(const char* name, const char* value_name, const char* description, const std::optional<T>& default_value = {}) {
    auto* const value = po::value<T>()->value_name(value_name);
    if (default_value) value->default_value(*default_value);
    options.add_options()(name, value, description);
  }
  template <class T> std::optional<T> value(const std::string& name) const {
    const po::variable_value& found = values[name];
    return found.empty() ? std::nullopt : std::optional<T>(found.as<T>());
  }
};

Options::Options(std::string command) : command_(std::move(command)), parser_(std::make_unique<Parser>()) {}
Options::~Options() = default;

void Options::add_flag(const char* name, const char* description) {
  parser_->options.add_options()(name, po::bool_switch(), description);
}

void Options::add_text(const char* name, const char* value, const char* description,
                       const std::optional<std::string>& default_value) {
  parser_->add(name, value, description, default_value);
}

void Options::add_whole(const char* name, const char* value, const char* description,
                        const std::optional<int64_t>& default_value) {
  parser_->add(name, value, description, default_value);
}

void Options::add_real(const char* name, const char* value, const char* description) {
  parser_->add<double>(name, value, description);
}

void Options::add_texts(const char* name, const char* value, const char* description) {
  auto* const list = po::value<std::vector<std::string>>()->value_name(value);
  parser_->options.add_options()(name, list, description);
}

void Options::parse(const Arguments& arguments, size_t most_words) {
  add_flag("json", "print one JSON object to stdout; everything else goes to stderr");
  add_flag("help,h", "print this text");
  auto rest = arguments.begin();
  while (rest != arguments.end() && words_.size() < most_words && !rest->starts_with("-")) words_.push_back(*rest++);
  const std::string see = " (see " + command_ + " --help)";
  try {
    // No abbreviations: --e could mean --epochs today and another option tomorrow.
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const Arguments dashed(rest, arguments.end());
    const auto parsed = po::command_line_parser(dashed).options(parser_->options).style(style).run();
    for (const auto& option : parsed.options) {
      if (option.position_key >= 0) throw UsageError("unexpected argument '" + option.original_tokens.at(0) + "'" + see);
    }
    po::store(parsed, parser_->values);
  } catch (const po::unknown_option& error) {
    const std::string& name = error.get_option_name();
    throw UsageError("unknown option '" + name + "'" + suggestion(name, long_names(parser_->options)) + see);
  } catch (const po::error& error) {
    throw UsageError(error.what() + see);
  }
}

void Options::print_help(const Usage& usage) const {
  std::cout << "usage: " << usage.line << "\n\n"
            << usage.summary << "\n\n"
            << parser_->options << "\nexamples:\n"
            << usage.examples;
}

bool Options::flag(const std::string& name) const { return parser_->value<bool>(name).value_or(false); }
std::optional<std::string> Options::text(const std::string& name) const { return parser_->value<std::string>(name); }
std::optional<int64_t> Options::whole(const std::string& name) const { return parser_->value<int64_t>(name); }
std::optional<double> Options::real(const std::string& name) const { return parser_->value<double>(name); }
std::vector<std::string> Options::texts(const std::string& name) const {
  return parser_->value<std::vector<std::string>>(name).value_or(std::vector<std::string>());
}

}  // namespace plugrad::tool
