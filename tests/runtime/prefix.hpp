// An installed tree of its own for a test, and programs run in it: what a search finds there, nobody else put there.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace plugrad::test {

// What a program printed, and how it ended.
struct Outcome {
  int status = -1;  // of exit; 128 + the signal that ended it
  std::string errors;
  std::vector<std::vector<std::string>> lines;  // of standard output, cut at tabs

  // The lines that begin with this word.
  std::vector<std::vector<std::string>> all(const std::string& kind) const;
  // The only such line; fails the test and answers an empty one otherwise. field(kind, i) is its i-th field.
  std::string field(const std::string& kind, size_t i) const;
};

using Environment = std::map<std::string, std::string>;

// A temporary tree with the core library and the program probe, removed at the end: bin/, lib/, lib/plugrad/plugins-v0/.
class Prefix {
 public:
  Prefix();
  ~Prefix();
  Prefix(const Prefix&) = delete;
  Prefix& operator=(const Prefix&) = delete;

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path plugins() const { return root_ / "lib/plugrad/plugins-v0"; }
  // Makes a directory below root.
  std::filesystem::path directory(const std::string& name) const;
  // Runs the probe with these commands; no PLUGRAD_ variable but those given. A minute at most.
  Outcome probe(const std::vector<std::string>& commands, const Environment& environment = {}) const;

 private:
  std::filesystem::path root_;
};

// The file of a small plugin of variants.cpp.
std::filesystem::path variant(const std::string& name);
// A copy of the file in a directory, named as plugins are.
std::filesystem::path add_plugin(const std::filesystem::path& file, const std::filesystem::path& directory,
                                 const std::string& name);
std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, const std::string& bytes);

}  // namespace plugrad::test
