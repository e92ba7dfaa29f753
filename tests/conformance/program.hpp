// Runs a program and keeps what it said.
#pragma once
#include <string>
#include <vector>

struct Said {
  int status;        // as exited with; -1 where it was killed
  std::string text;  // both standard output and standard error
};

Said run_program(const std::vector<std::string>& arguments);
