#include <tests/runtime/prefix.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace plugrad::test {
namespace fs = std::filesystem;
namespace {
constexpr unsigned kPatience = 60;  // seconds until a hanging program is killed

std::vector<std::string> merged_environment(const Environment& given) {
  std::vector<std::string> all;
  for (char** each = environ; *each; ++each)
    if (const std::string v(*each); !v.starts_with("PLUGRAD_") && !given.contains(v.substr(0, v.find('='))))
      all.push_back(v);
  for (const auto& [name, value] : given) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& each : strings) all.push_back(each.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::vector<std::string>> cut(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string>& fields = lines.emplace_back();
    std::istringstream rest(line);
    for (std::string field; std::getline(rest, field, '\t');) fields.push_back(field);
    fields.resize(std::max<size_t>(fields.size(), 1));
  }
  return lines;
}

void redirect(const fs::path& file, int to) {
  const int opened = open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  dup2(opened, to);
}
}  // namespace

std::vector<std::vector<std::string>> Outcome::all(const std::string& kind) const {
  std::vector<std::vector<std::string>> found;
  for (const auto& line : lines)
    if (line[0] == kind) found.push_back(line);
  return found;
}

std::string Outcome::field(const std::string& kind, size_t i) const {
  const auto found = all(kind);
  if (found.size() != 1) {
    ADD_FAILURE() << found.size() << " lines of " << kind << ", expected one; status " << status << ", " << errors;
    for (const auto& line : lines)
      for (const std::string& each : line) ADD_FAILURE() << each;
    return {};
  }
  return i < found[0].size() ? found[0][i] : std::string();
}

Prefix::Prefix() {
  std::string pattern = (fs::temp_directory_path() / "plugrad-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary directory");
  root_ = fs::canonical(pattern);
  fs::create_directories(plugins());
  fs::create_directories(root_ / "bin");
  fs::copy_file(PLUGRAD_PROBE, root_ / "bin/probe");
  fs::copy_file(PLUGRAD_CORE, root_ / "lib" / PLUGRAD_CORE_SONAME);
  fs::copy_file(PLUGRAD_PLUGIN_PROBE, root_ / "lib/plugrad/plugrad-probe");
}

Prefix::~Prefix() {
  std::error_code none;
  fs::remove_all(root_, none);
}

fs::path Prefix::directory(const std::string& name) const {
  fs::create_directories(root_ / name);
  return root_ / name;
}

Outcome Prefix::probe(const std::vector<std::string>& commands, const Environment& environment) const {
  std::vector<std::string> arguments{(root_ / "bin/probe").string()};
  arguments.insert(arguments.end(), commands.begin(), commands.end());
  Environment known = environment;
  known.emplace("XDG_CACHE_HOME", (root_ / "cache").string());
  std::vector<std::string> variables = merged_environment(known);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  const fs::path out = root_ / "out", errors = root_ / "errors";
  const pid_t child = fork();
  if (child == 0) {
    redirect(out, STDOUT_FILENO);
    redirect(errors, STDERR_FILENO);
    alarm(kPatience);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(errors), cut(read_file(out))};
}

fs::path variant(const std::string& name) { return fs::path(PLUGRAD_VARIANTS) / ("libplugrad-backend-" + name + ".so"); }

fs::path add_plugin(const fs::path& file, const fs::path& directory, const std::string& name) {
  const fs::path to = directory / ("libplugrad-backend-" + name + ".so");
  fs::copy_file(file, to, fs::copy_options::overwrite_existing);
  return to;
}

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace plugrad::test
