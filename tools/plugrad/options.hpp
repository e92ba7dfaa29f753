// The options of a command. Boost.Program_options parses them and prints help; only options.cpp includes it.
#pragma once
#include <tools/plugrad/commands.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::tool {

// Declare the command's own options, then parse, then ask for values by the long names. Every command also has the flags
// --json and --help.
class Options {
 public:
  // command: its first words, "plugrad train".
  explicit Options(std::string command);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // The name "verbose,v" declares --verbose and -v. --help shows `value`, such as "FILE", where the user writes a value.
  void add_flag(const char* name, const char* description);
  void add_text(const char* name, const char* value, const char* description,
                const std::optional<std::string>& default_value = std::nullopt);
  void add_whole(const char* name, const char* value, const char* description,
                 const std::optional<int64_t>& default_value = std::nullopt);
  void add_real(const char* name, const char* value, const char* description);
  void add_texts(const char* name, const char* value, const char* description);  // may be repeated

  // Up to `most_words` arguments may precede the options. Throws UsageError, with the closest match for an unknown option.
  void parse(const Arguments& arguments, size_t most_words = 0);
  void print_help(const Usage& usage) const;

  // Returns the arguments before the options.
  const Arguments& words() const { return words_; }
  bool flag(const std::string& name) const;
  // Each returns the given value, else the default, else nothing. A command may lack the option.
  std::optional<std::string> text(const std::string& name) const;
  std::optional<int64_t> whole(const std::string& name) const;
  std::optional<double> real(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;

 private:
  struct Parser;

  std::string command_;
  Arguments words_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace plugrad::tool
