#include <backends/cuda/library.hpp>

#include <cstdlib>
#include <filesystem>

namespace plugrad::cuda {
namespace {

namespace fs = std::filesystem;

void add_wheels(const LibraryPlaces& places, const fs::path& site_packages, std::vector<std::string>& found) {
  std::error_code ignored;
  for (const char* file : places.in_site_packages)
    if (const fs::path candidate = site_packages / file; fs::exists(candidate, ignored)) found.push_back(candidate);
}

// The plugin itself may be part of a wheel. Only package folders among its parents are searched, because anybody may be able
// to write to folders such as /tmp.
void add_beside_plugin(const LibraryPlaces& places, std::vector<std::string>& found) {
  Dl_info own{};
  if (!dladdr(reinterpret_cast<void*>(&add_wheels), &own) || !own.dli_fname) return;
  std::error_code failed;
  for (fs::path folder = fs::absolute(own.dli_fname, failed); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "site-packages" || folder.filename() == "dist-packages") add_wheels(places, folder, found);
}

// The shell's active Python environment.
void add_prefix(const LibraryPlaces& places, const char* variable, std::vector<std::string>& found) {
  const char* prefix = secure_getenv(variable);
  if (!prefix || prefix[0] != '/') return;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(prefix) / "lib", failed))
    if (entry.path().filename().string().starts_with("python3")) add_wheels(places, entry.path() / "site-packages", found);
}

}  // namespace

std::vector<std::string> candidates(const LibraryPlaces& places) {
  if (const char* named = secure_getenv(places.variable)) return {named};
  if (places.brought) return {places.brought};
  std::vector<std::string> found(places.names.begin(), places.names.end());
  add_beside_plugin(places, found);
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) add_prefix(places, variable, found);
  for (const char* file : places.names) found.push_back(std::string("/usr/local/cuda/lib64/") + file);
  return found;
}

}  // namespace plugrad::cuda
