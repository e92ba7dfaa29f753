// Groups of processes that train together: https://docs.pytorch.org/docs/stable/distributed.html has the same names. A
// communicator, a plugin over MPI, Gloo or another engine, moves the bytes.
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace plugrad::distributed {

class GroupState;

// A handle to a group of processes. The processes of a group are its ranks: 0, 1, .. size() - 1. Safe from any thread, but
// all ranks must call the same collectives in the same order.
class PLUGRAD_API Group {
 public:
  Group() = default;  // undefined; functions take it for the group of all ranks
  explicit Group(std::shared_ptr<GroupState> state) : state_(std::move(state)) {}

  bool defined() const { return static_cast<bool>(state_); }
  int rank() const;                       // of this process
  int size() const;                       // the number of processes
  const std::vector<int>& ranks() const;  // by ranks of this group: the ranks in the group of all
  std::string communicator() const;       // "gloo"
  std::string engine() const;             // "Gloo 0.5.0"

  GroupState& state() const { return *state_; }
  friend bool operator==(const Group&, const Group&) = default;

 private:
  std::shared_ptr<GroupState> state_;
};

// An empty or negative field is taken from the environment:
//   communicator   PLUGRAD_COMMUNICATOR, else mpi or mpich in processes that mpirun started, else gloo
//   rank, size     RANK and WORLD_SIZE (plugrad launch, torchrun, Kubernetes' PyTorchJob), SLURM_PROCID and SLURM_NTASKS
//                  (srun), or the engine's launcher (mpirun)
//   store          PLUGRAD_STORE, else tcp://MASTER_ADDR:MASTER_PORT, else pmix: under a launcher with PMIx
//   timeout        PLUGRAD_DISTRIBUTED_TIMEOUT in seconds, else 30 minutes
struct ProcessGroupOptions {
  std::string communicator = {};  // a name, or the absolute path of a file
  int rank = -1, size = -1;
  // Where the ranks find each other: file:///DIRECTORY, which all ranks can reach; tcp://HOST:PORT, where rank 0 listens; or
  // pmix:, where the launcher says where rank 0 listens.
  std::string store = {};
  std::chrono::milliseconds timeout{0};  // of the start and of each collective
  // Of the communicator, beside those in PLUGRAD_<NAME>_OPTIONS ("interface=eth0"): gloo takes interface and address,
  // nccl takes device.
  OptionList options = {};
};

// Joins this process to the group of all ranks, and returns it. Waits for all ranks. Throws Error (invalid) if the process
// is in such a group already, if the environment does not tell a rank, or if launcher and engine count different numbers of
// processes; Error (peer_lost) if a rank does not come in time.
PLUGRAD_API Group init_process_group(const ProcessGroupOptions& options = {});
// Leaves the group of all ranks and all groups made of it. All ranks call it. Does nothing without a group. The end of the
// process does the same; a process that ends in another way counts as lost. Throws Error (peer_lost), after leaving, if
// another rank is lost meanwhile.
PLUGRAD_API void destroy_process_group();
PLUGRAD_API bool is_initialized();
// Whether a launcher tells this process its rank and where the ranks meet, so that init_process_group() needs no options.
// Throws Error (invalid) for variables that are no numbers.
PLUGRAD_API bool is_launched();
// The group of all ranks. Throws Error (invalid) before init_process_group.
PLUGRAD_API Group world();
// The rank in a group and its size; in the group of all ranks by default.
PLUGRAD_API int get_rank(const Group& group = {});
PLUGRAD_API int get_world_size(const Group& group = {});
// Makes a group of some ranks, in ascending order; ranks are those of the group of all. All ranks of the group of all call
// it with the same list. Returns an undefined group to ranks outside of it. Throws Error (invalid) for ranks that do not
// exist or repeat.
PLUGRAD_API Group new_group(const std::vector<int>& ranks);
// Tells all other ranks that this rank fails and why: their collectives end with an error that quotes the text. The first
// rank that fails is the one that all ranks name. Does nothing without a group.
PLUGRAD_API void abort_process_group(const std::string& why) noexcept;

}  // namespace plugrad::distributed
