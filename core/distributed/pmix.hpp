// PMIx (https://pmix.org): what mpirun of Open MPI, prterun, and srun --mpi=pmix offer to the processes that they start.
#pragma once
#include <chrono>
#include <functional>
#include <string>

namespace plugrad::distributed {

// Whether a launcher with PMIx started this process. Reads the environment alone.
bool is_by_pmix();

// Tells all ranks of the job a text of rank 0: tell() is called there. Opens the library where it is first needed. Throws
// Error: invalid if there is no library, peer_lost if rank 0 does not tell in time.
std::string told_by_rank_0(int rank, const std::function<std::string()>& tell, std::chrono::milliseconds most);
// Ends the library's connection, once all ranks have been told: a launcher counts a process as failed that ends without.
// Does nothing without a connection.
void leave_pmix();

}  // namespace plugrad::distributed
