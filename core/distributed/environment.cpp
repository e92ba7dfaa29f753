#include <core/distributed/environment.hpp>

#include <core/distributed/pmix.hpp>
#include <core/runtime/plugins/communicators.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <plugrad/runtime/error.hpp>

#include <charconv>
#include <cstring>
#include <initializer_list>

namespace plugrad::distributed {
namespace {

// A variable's text; "" if it is not set.
std::string text(const char* name) {
  const char* value = platform::environment(name);
  return value ? value : "";
}

// The number in the first of these variables that is set; -1 if none is.
int number(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string value = text(name);
    if (value.empty()) continue;
    int result = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || *end || result < 0)
      throw Error(Code::invalid,
                  "[init_process_group] " + std::string(name) + "='" + value + "': a number from 0 on expected");
    return result;
  }
  return -1;
}

// The communicator of the mpirun that started this process; empty if none did.
std::string by_mpirun() {
  if (!text("OMPI_COMM_WORLD_SIZE").empty()) return "mpi";
  if (text("PMI_SIZE").empty()) return "";
  return engines::is_present("mpich") ? "mpich" : "mpi";
}

std::string communicator() {
  const std::string chosen = text("PLUGRAD_COMMUNICATOR");
  if (!chosen.empty()) return chosen;
  const std::string launcher = by_mpirun();
  return launcher.empty() ? "gloo" : launcher;
}

std::string store_for(const std::string& communicator) {
  const std::string chosen = text("PLUGRAD_STORE");
  if (!chosen.empty()) return chosen;
  const std::string host = text("MASTER_ADDR"), port = text("MASTER_PORT");
  if (!host.empty() && !port.empty()) return "tcp://" + host + ":" + port;
  return is_by_pmix() && by_mpirun() != communicator ? kPmixStore : "";  // MPI needs none
}

std::chrono::milliseconds timeout() {
  using std::chrono::seconds;
  const int wanted = number({"PLUGRAD_DISTRIBUTED_TIMEOUT"});
  if (wanted == 0)
    throw Error(Code::invalid, "[init_process_group] PLUGRAD_DISTRIBUTED_TIMEOUT=0: seconds from 1 on expected");
  return seconds(wanted < 0 ? 1800 : wanted);
}

void require_rank(const Launch& launch) {
  if (launch.size == 0 || (launch.size > 0 && launch.rank >= launch.size))
    throw Error(Code::invalid, "[init_process_group] rank " + std::to_string(launch.rank) + " of " +
                                   std::to_string(launch.size) + " ranks: a rank below the number of ranks expected");
  if ((launch.rank < 0) != (launch.size < 0))
    throw Error(Code::invalid,
                "[init_process_group] only one of rank and size is known: give both, in the options or as "
                "RANK and WORLD_SIZE");
}
}  // namespace

Launch launch_of(const ProcessGroupOptions& options) {
  Launch launch;
  launch.communicator = options.communicator.empty() ? communicator() : options.communicator;
  launch.rank = options.rank >= 0 ? options.rank : number({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  launch.size =
      options.size >= 0 ? options.size : number({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  launch.local_size = number({"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
  const int generation = number({"PLUGRAD_GENERATION", "TORCHELASTIC_RESTART_COUNT"});
  launch.generation = generation < 0 ? 0 : static_cast<uint32_t>(generation);
  launch.store = options.store.empty() ? store_for(launch.communicator) : options.store;
  launch.job = text("PLUGRAD_JOB") + text("TORCHELASTIC_RUN_ID") + text("SLURM_JOB_ID");
  launch.timeout = options.timeout.count() > 0 ? options.timeout : timeout();
  require_rank(launch);
  return launch;
}

bool is_rank(const Launch& launch) {
  const bool can_meet = !launch.store.empty() || (launch.communicator == by_mpirun());
  return launch.rank >= 0 && can_meet;
}

}  // namespace plugrad::distributed
