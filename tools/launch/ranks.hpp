// The processes that plugrad launch starts.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace plugrad::tool {

// Starts `count` processes of a program, each with its rank in the environment, and waits for them. The first that fails is
// reported on stderr and to the others by the store; the others have `grace` to end before signals end them. SIGINT, SIGTERM
// and SIGHUP are passed on. Returns the exit status of the first that failed, 128 + N for signal N, or 0. Throws
// std::runtime_error if the processes cannot be started.
int run_ranks(const std::vector<std::string>& program, int count, std::chrono::milliseconds grace);

}  // namespace plugrad::tool
