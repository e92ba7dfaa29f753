#include <tests/conformance/program.hpp>

#include <sys/wait.h>

#include <array>
#include <cstdio>

Said run_program(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& argument : arguments) line += "'" + argument + "' ";
  line += "2>&1";
  std::FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) return {-1, "popen failed"};
  std::string text;
  std::array<char, 4096> chunk;
  for (size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) text.append(chunk.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}
