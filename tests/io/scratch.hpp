// A folder for the files of one test.
#pragma once
#include <plugrad/runtime/error.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace plugrad::test {

class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "plugrad-test-XXXXXX").string();
    folder_ = mkdtemp(pattern.data()) ? pattern : std::string();
    EXPECT_FALSE(folder_.empty()) << "no folder for temporary files";
  }
  ~Scratch() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  // Returns the names of all files in the folder.
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) found.insert(entry.path().filename().string());
    return found;
  }

 private:
  std::string folder_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the message of the Error with this code that an action throws. Fails the test if it throws none.
template <class Action> std::string error_of(const Action& action, Code code) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}
template <class Action> std::string io_error_of(const Action& action) { return error_of(action, Code::io_error); }

inline void expect_mentions(const std::string& message, const std::string& words) {
  EXPECT_NE(message.find(words), std::string::npos) << "in:       " << message << "\nexpected: " << words;
}

}  // namespace plugrad::test
