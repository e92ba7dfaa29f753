// What the launcher of this process wrote into the environment.
#pragma once
#include <plugrad/distributed/process_group.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace plugrad::distributed {

inline constexpr const char* kPmixStore = "pmix:";

struct Launch {
  std::string communicator;
  int rank = -1, size = -1;
  int local_size = -1;      // ranks on this machine; -1: unknown
  uint32_t generation = 0;  // counts restarts of the job
  std::string store;        // file:///.., tcp://.. or pmix:; "" if there is none
  std::string job;          // tells apart jobs that use one store
  std::chrono::milliseconds timeout{0};
};

// Completes the options from the environment. Throws Error (invalid) for values that are not numbers, or out of range.
Launch launch_of(const ProcessGroupOptions& options);

// Whether a launcher started this process as a rank.
bool is_rank(const Launch& launch);

}  // namespace plugrad::distributed
