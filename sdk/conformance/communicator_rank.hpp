// What one rank of a check of a communicator has: the table, a store, a group, and a place for failures.
#pragma once
#include <plugrad/sdk/communicator.h>
#include <sdk/conformance/device.hpp>
#include <sdk/conformance/host.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace plugrad::conformance {

// A communicator's table. Throws Unloadable.
const plugrad_communicator& load_communicator(const std::string& path);

// How long collectives of the checks may take, and how much longer a call that fails.
constexpr std::chrono::milliseconds kCommTimeout{2000}, kCommGrace{2000};

class Rank {
 public:
  // folder: where the ranks meet; empty where the engine has a launcher. rank and size: -1 there.
  Rank(const plugrad_communicator& table, OptionList options, std::string folder, int rank, int size);
  Rank(const Rank&) = delete;

  // Opens a group of all ranks of a generation. Throws Breach.
  plugrad_group* open(uint32_t generation);
  int rank() const { return rank_; }
  int size() const { return size_; }
  const plugrad_communicator& table() const { return table_; }

  // Fills in what a core fills in.
  plugrad_collective collective(uint32_t kind, uint8_t dtype, const void* from, void* to, uint64_t count) const;
  // Starts a collective and waits for its end, by test or by wait. PLUGRAD_UNSUPPORTED: declined.
  Outcome run(plugrad_group* group, const plugrad_collective& collective);
  struct Started {
    Outcome outcome;
    plugrad_work* work = nullptr;
  };
  Started start(plugrad_group* group, const plugrad_collective& collective);
  Outcome finish(plugrad_work* work, std::chrono::milliseconds most);

  // Counts a case, and notes a failure unless it is right.
  void expect(bool right, const std::string& failure);
  void skip(const std::string& why) { skips.push_back(why); }
  uint64_t cases = 0;
  std::vector<std::string> failures, skips;

 private:
  const plugrad_communicator& table_;
  OptionList options_;
  std::string folder_;
  plugrad_store store_{};
  int rank_, size_;
  mutable uint64_t number_ = 0;
};

struct CommunicatorCheck {
  const char* name;
  void (*run)(Rank& rank);
  bool kills;  // whether the last rank is killed, as the check wants
};
const std::vector<CommunicatorCheck>& all_communicator_checks();

}  // namespace plugrad::conformance
