// A private installed tree in which a test runs programs: a search finds only the plugins that the test put there.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace plugrad::test {

// A program's output and exit status.
struct Outcome {
  int status = -1;  // exit status, or 128 + the signal that ended it
  std::string errors;
  std::vector<std::vector<std::string>> lines;  // of standard output, split at tabs

  // The lines that begin with this word.
  std::vector<std::vector<std::string>> all(const std::string& kind) const;
  // Field i of the only such line. Fails the test and returns "" unless there is exactly one.
  std::string field(const std::string& kind, size_t i) const;
};

using Environment = std::map<std::string, std::string>;

// A temporary tree with the core library and the program probe: bin/, lib/, lib/plugrad/plugins-v0/, and a cache of its own.
// Removed at the end.
class Prefix {
 public:
  Prefix();
  ~Prefix();
  Prefix(const Prefix&) = delete;
  Prefix& operator=(const Prefix&) = delete;

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path plugins() const { return root_ / "lib/plugrad/plugins-v0"; }
  // Creates a directory below root.
  std::filesystem::path directory(const std::string& name) const;
  // Runs the program probe with these commands for at most a minute, with no PLUGRAD_ variables except those given.
  Outcome probe(const std::vector<std::string>& commands, const Environment& environment = {}) const;

 private:
  std::filesystem::path root_;
};

// The path of a plugin built from variants.cpp.
std::filesystem::path variant(const std::string& name);
// Copies the file to a directory under a plugin's file name; returns the path of the copy.
std::filesystem::path add_plugin(const std::filesystem::path& file, const std::filesystem::path& directory,
                                 const std::string& name);
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, const std::string& bytes);

}  // namespace plugrad::test
