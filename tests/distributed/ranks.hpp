// One rank of a test: a process that `plugrad launch` or mpirun starts.
#pragma once
#include <plugrad/plugrad.hpp>

#include <string>

namespace plugrad::test {

// Trains in an artificial way until something happens to the last rank. how: kill, exit, throw, stop, less, differ or part,
// or first, where rank 0 throws while the others pause; place: 0 for before init_process_group, then at which of its calls.
// Returns the exit status.
int fail_somewhere(const std::string& how, int place);

}  // namespace plugrad::test
