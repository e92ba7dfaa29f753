// Jobs of several processes, which tests start.
#pragma once
#include <tests/paths.hpp>
#include <tests/tools/process.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace plugrad::test {

using Words = std::vector<std::string>;

// Sets a variable of the environment while it lives.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) { setenv(name_.c_str(), value.c_str(), 1); }
  ~Variable() { unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;

 private:
  std::string name_;
};

inline std::string gloo() { return plugin_path("libplugrad-communicator-gloo.so"); }
inline std::string sim() { return test_plugin_path("libplugrad-communicator-sim.so"); }

// The communicator nccl over stand-ins of NCCL and of CUDA's driver. PLUGRAD_SIMT: one emulated device for each process.
inline std::string nccl_emu() { return test_plugin_path("libplugrad-communicator-nccl-emu.so"); }
class OverNccl {
  Variable engine_{"PLUGRAD_COMMUNICATOR", nccl_emu()}, devices_{"PLUGRAD_SIMT", "devices=1"};
};

inline Outcome launch(int ranks, const Words& program, const Words& options = {}) {
  Words words{"launch", "-n", std::to_string(ranks)};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), program.begin(), program.end());
  return plugrad_run(words);
}

inline bool has_mpi() {
  return std::filesystem::exists(plugin_path("libplugrad-communicator-mpi.so")) &&
         std::system("command -v mpirun.openmpi > /dev/null 2>&1") == 0;
}

inline bool has_mpich() {
  return std::filesystem::exists(plugin_path("libplugrad-communicator-mpich.so")) &&
         std::system("command -v mpirun.mpich > /dev/null 2>&1") == 0;
}

// By mpirun, in a process without what `launch` set: the ranks have no store but the store that they make. `launch` ends
// what mpirun leaves running.
inline Outcome by_launcher(const Words& launcher, int ranks, const Words& program) {
  Words words{"env", "-u", "RANK", "-u", "WORLD_SIZE", "-u", "LOCAL_WORLD_SIZE", "-u", "PLUGRAD_STORE"};
  words.insert(words.end(), launcher.begin(), launcher.end());
  words.insert(words.end(), {"-n", std::to_string(ranks)});
  words.insert(words.end(), program.begin(), program.end());
  return launch(1, words);
}
inline Outcome mpirun(int ranks, const Words& program) {
  const Variable root("OMPI_ALLOW_RUN_AS_ROOT", "1"), confirmed("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  return by_launcher({"mpirun.openmpi", "--oversubscribe", "--bind-to", "none"}, ranks, program);
}
inline Outcome mpirun_of_mpich(int ranks, const Words& program) { return by_launcher({"mpirun.mpich"}, ranks, program); }

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace plugrad::test
