// Runs a program and returns its status and output.
#pragma once
#include <string>
#include <vector>

struct Said {
  int status;        // the exit status; -1 if the program was killed
  std::string text;  // both standard output and standard error
};

Said run_program(const std::vector<std::string>& arguments);
