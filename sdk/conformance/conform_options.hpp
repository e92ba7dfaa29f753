// The command line of plugrad-conform.
#pragma once
#include <sdk/conformance/session.hpp>

#include <boost/program_options.hpp>

#include <string>
#include <vector>

namespace plugrad::conformance {

namespace po = boost::program_options;

struct Request {
  std::string file, junit, skip, badge, baseline, launcher, rank_check;
  std::vector<std::string> only;
  Settings settings;
  unsigned jobs = 1, deadline = 300;
  int budget = 0;  // seconds; 0: none
  int level = -1;  // -1: not asked for
  bool json = false, help = false, list = false, kernels = false, in_process = false, worker = false, train = false;
  bool perf = false;
  po::options_description shown{"options"};
};

// Fills in the request. Throws po::error for a mistake in the command line.
void parse(int argc, char** argv, Request& request);

}  // namespace plugrad::conformance
