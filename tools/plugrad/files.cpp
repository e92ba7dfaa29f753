#include <tools/plugrad/files.hpp>

#include <plugrad/runtime/error.hpp>

#include <filesystem>
#include <fstream>

namespace plugrad::tool {
namespace fs = std::filesystem;

std::string absolute_path(const std::string& path) { return fs::absolute(path).string(); }

std::string joined_path(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

std::string folder_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? "." : folder.string();
}

void create_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(Code::io_error, "[" + path + "] cannot be created: " + error.message());
}

std::optional<Mapping> mapping_of(const std::string& path) {
  std::error_code error;
  const std::string real = fs::canonical(path, error).string();
  if (error) return std::nullopt;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" r-xp ") != std::string::npos && line.ends_with(" " + real)) return Mapping{real, line};
  }
  return std::nullopt;
}

}  // namespace plugrad::tool
