// The communicators "mpi", over any MPI-3 library, and "mpich", over MPICH's ABI. One thread makes all calls of MPI.
#include <plugrad/sdk/communicator.h>
#include <plugrad/sdk/dtypes.hpp>

#include <mpi.h>
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif
#if defined(OPEN_MPI) && defined(MPIX_ERR_PROC_FAILED)  // ULFM; MPICH has the errors without the functions
#define PLUGRAD_MPI_NAMES_RANKS
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {
const plugrad_host* host = nullptr;   // set by open; all hosts of a process are one core
bool initialised = false;             // by this communicator
std::atomic<bool> any_broken{false};  // of the groups so far

plugrad_status report(plugrad_status status, const char* why) {
  host->report(host, status, why);
  return status;
}
}  // namespace

struct plugrad_group {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 0;
  uint64_t timeout = 0;  // milliseconds
  std::mutex mutex;      // of the first reason
  std::atomic<bool> broken{false};
  plugrad_group_failure failure{sizeof(plugrad_group_failure), -1, "", nullptr};  // written before broken
};

struct plugrad_work {
  plugrad_group* group = nullptr;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Datatype> types;  // made for this work
};

namespace {

// Whether MPI knows which rank is lost; libraries without ULFM never do. Stores the rank in the failure.
bool find_lost([[maybe_unused]] plugrad_group& group, [[maybe_unused]] int error_class) {
#ifdef PLUGRAD_MPI_NAMES_RANKS
  if (error_class != MPIX_ERR_PROC_FAILED && error_class != MPIX_ERR_REVOKED && error_class != MPIX_ERR_PROC_FAILED_PENDING)
    return false;
  MPI_Group lost, all;
  MPIX_Comm_get_failed(group.comm, &lost);
  MPI_Comm_group(group.comm, &all);
  int count = 0, first = 0, rank = -1;
  MPI_Group_size(lost, &count);
  if (count) MPI_Group_translate_ranks(lost, 1, &first, all, &rank);
  group.failure.rank = rank;
  MPI_Group_free(&lost);
  MPI_Group_free(&all);
  MPIX_Comm_revoke(group.comm);  // what the other ranks wait for ends
  return count > 0;
#else
  return false;
#endif
}

plugrad_status failed(plugrad_group& group, int error) {
  int length = 0, error_class = MPI_SUCCESS;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_string(error, text, &length);
  MPI_Error_class(error, &error_class);
  const std::lock_guard lock(group.mutex);
  if (!group.broken) {
    std::snprintf(group.failure.why, sizeof group.failure.why, "%.*s", length, text);
    find_lost(group, error_class);
    any_broken = true;
    group.broken = true;
  }
  return report(PLUGRAD_PEER_LOST, group.failure.why);
}

plugrad_status refuse_broken(const plugrad_group& group) { return report(PLUGRAD_PEER_LOST, group.failure.why); }

// MPI has neither f16 nor bf16.
MPI_Datatype floating_type(size_t size) {
  return size == sizeof(float) ? MPI_FLOAT : size == sizeof(double) ? MPI_DOUBLE : MPI_DATATYPE_NULL;
}
MPI_Datatype signed_type(size_t size) {
  return size == 1 ? MPI_INT8_T : size == 2 ? MPI_INT16_T : size == 4 ? MPI_INT32_T : MPI_INT64_T;
}
MPI_Datatype type_of(uint32_t dtype) {
  const plugrad::DTypeInfo* const info = plugrad::dtype_info(static_cast<uint8_t>(dtype));
  if (!info) return MPI_DATATYPE_NULL;
  const auto size = static_cast<size_t>(info->size);
  if (plugrad::is_floating(info->dtype)) return floating_type(size);
  if (!plugrad::is_integer(info->dtype)) return MPI_DATATYPE_NULL;
  return !info->is_unsigned() ? signed_type(size) : size == 1 ? MPI_UINT8_T : MPI_DATATYPE_NULL;
}
MPI_Op op_of(uint32_t how) {
  switch (how) {
    case PLUGRAD_REDUCE_SUM: return MPI_SUM;
    case PLUGRAD_REDUCE_MIN: return MPI_MIN;
    case PLUGRAD_REDUCE_MAX: return MPI_MAX;
    case PLUGRAD_REDUCE_PRODUCT: return MPI_PROD;
    default: return MPI_OP_NULL;
  }
}

// A number of bytes as MPI's int and a type. MPI-3 counts by int: more bytes are one element of a type of that size.
struct Bytes {
  int count;
  MPI_Datatype type;
};
Bytes bytes_for(plugrad_work& work, uint64_t bytes) {
  if (bytes <= INT_MAX) return {static_cast<int>(bytes), MPI_BYTE};
  constexpr uint64_t kPiece = 1 << 20;
  MPI_Datatype piece, all;
  MPI_Type_contiguous(kPiece, MPI_BYTE, &piece);
  int lengths[] = {static_cast<int>(bytes / kPiece), static_cast<int>(bytes % kPiece)};
  MPI_Aint places[] = {0, static_cast<MPI_Aint>(bytes - bytes % kPiece)};
  MPI_Datatype types[] = {piece, MPI_BYTE};
  MPI_Type_create_struct(2, lengths, places, types, &all);
  MPI_Type_commit(&all);
  MPI_Type_free(&piece);
  work.types.push_back(all);
  return {1, all};
}

// Whether MPI can do a collective.
bool has(const plugrad_collective& c) {
  if (c.kind < PLUGRAD_COLL_BARRIER || c.kind > PLUGRAD_COLL_RECV) return false;
  if (c.kind == PLUGRAD_COLL_ALL_REDUCE) return type_of(c.dtype) != MPI_DATATYPE_NULL && op_of(c.how) != MPI_OP_NULL;
  if (c.kind == PLUGRAD_COLL_REDUCE_SCATTER)
    return c.count <= INT_MAX && type_of(c.dtype) != MPI_DATATYPE_NULL && op_of(c.how) != MPI_OP_NULL;
  return true;
}

int all_reduce(plugrad_group& group, const plugrad_collective& c, plugrad_work& work) {
  // MPI-3 counts by int; the pieces of a larger reduction are several requests.
  constexpr uint64_t kMost = 1 << 30;
  int error = MPI_SUCCESS;
  work.requests.clear();
  for (uint64_t done = 0; done < c.count && !error; done += kMost) {
    const auto count = static_cast<int>(std::min(kMost, c.count - done));
    const auto* from = static_cast<const char*>(c.from) + done * c.item;
    auto* to = static_cast<char*>(c.to) + done * c.item;
    work.requests.push_back(MPI_REQUEST_NULL);
    error = MPI_Iallreduce(c.from == c.to ? MPI_IN_PLACE : from, to, count, type_of(c.dtype), op_of(c.how), group.comm,
                           &work.requests.back());
  }
  return error;
}

// Tags tell apart what programs confuse: MPI promises 15 bits.
int tag_of(const plugrad_collective& c) { return static_cast<int>((c.fingerprint ^ c.fingerprint >> 32) & 0x7fff); }

// By messages of each pair, because MPI's own function counts the places of blocks by int.
int all_to_all_of_counts(plugrad_group& group, const plugrad_collective& c, plugrad_work& work) {
  const auto size = static_cast<size_t>(group.size);
  const auto* from = static_cast<const char*>(c.from);
  auto* to = static_cast<char*>(c.to);
  work.requests.assign(2 * size, MPI_REQUEST_NULL);
  int error = MPI_SUCCESS;
  for (size_t i = 0; i < size && !error; ++i) {
    const uint64_t sent = c.counts[i] * c.item, received = c.counts[size + i] * c.item;
    const Bytes out = bytes_for(work, sent), in = bytes_for(work, received);
    const auto peer = static_cast<int>(i);
    error = MPI_Irecv(to, in.count, in.type, peer, tag_of(c), group.comm, &work.requests[2 * i]);
    if (!error) error = MPI_Isend(from, out.count, out.type, peer, tag_of(c), group.comm, &work.requests[2 * i + 1]);
    from += sent;
    to += received;
  }
  return error;
}

int all_to_all(plugrad_group& group, const plugrad_collective& c, plugrad_work& work) {
  if (c.counts) return all_to_all_of_counts(group, c, work);
  const Bytes block = bytes_for(work, c.count * c.item);
  return MPI_Ialltoall(c.from, block.count, block.type, c.to, block.count, block.type, group.comm, &work.requests[0]);
}

int reduce_scatter(plugrad_group& group, const plugrad_collective& c, plugrad_work& work) {
  return MPI_Ireduce_scatter_block(c.from == c.to ? MPI_IN_PLACE : c.from, c.to, static_cast<int>(c.count), type_of(c.dtype),
                                   op_of(c.how), group.comm, &work.requests[0]);
}

int submit(plugrad_group& group, const plugrad_collective& c, plugrad_work& work) {
  work.requests.assign(1, MPI_REQUEST_NULL);
  MPI_Request* const request = &work.requests[0];
  switch (c.kind) {
    case PLUGRAD_COLL_BARRIER: return MPI_Ibarrier(group.comm, request);
    case PLUGRAD_COLL_ALL_REDUCE: return all_reduce(group, c, work);
    case PLUGRAD_COLL_REDUCE_SCATTER: return reduce_scatter(group, c, work);
    case PLUGRAD_COLL_ALL_TO_ALL: return all_to_all(group, c, work);
    default: break;
  }
  const Bytes block = bytes_for(work, c.count * c.item);
  switch (c.kind) {
    case PLUGRAD_COLL_BROADCAST: return MPI_Ibcast(c.to, block.count, block.type, c.peer, group.comm, request);
    case PLUGRAD_COLL_ALL_GATHER:
      return MPI_Iallgather(c.from, block.count, block.type, c.to, block.count, block.type, group.comm, request);
    case PLUGRAD_COLL_SEND: return MPI_Isend(c.from, block.count, block.type, c.peer, tag_of(c), group.comm, request);
    default: return MPI_Irecv(c.to, block.count, block.type, c.peer, tag_of(c), group.comm, request);
  }
}

void destroy(plugrad_work* work) {
  for (MPI_Datatype& each : work->types) MPI_Type_free(&each);
  delete work;
}

plugrad_status start(plugrad_group* group, const plugrad_collective* c, plugrad_work** made) {
  if (group->broken) return refuse_broken(*group);
  if (!has(*c)) return report(PLUGRAD_UNSUPPORTED, "MPI has no such collective for this dtype and size");
  auto* work = new plugrad_work;
  work->group = group;
  if (const int error = submit(*group, *c, *work)) {
    destroy(work);
    return failed(*group, error);
  }
  *made = work;
  return PLUGRAD_OK;
}

// Not MPI_Testall, which reports no more than MPI_ERR_IN_STATUS.
plugrad_status test(plugrad_work* work, uint32_t* ended) {
  plugrad_group& group = *work->group;
  *ended = 0;
  while (!work->requests.empty()) {
    int flag = 0;
    if (const int error = MPI_Test(&work->requests.back(), &flag, MPI_STATUS_IGNORE)) {
      destroy(work);
      return failed(group, error);
    }
    if (!flag) return PLUGRAD_OK;
    work->requests.pop_back();
  }
  destroy(work);
  *ended = 1;
  return PLUGRAD_OK;
}

// --- Groups.

int number_in(const char* name, int none) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : none;
}

plugrad_status launched(const plugrad_host*, int32_t* rank, int32_t* size) {
  *rank = number_in("OMPI_COMM_WORLD_RANK", number_in("PMI_RANK", -1));
  *size = number_in("OMPI_COMM_WORLD_SIZE", number_in("PMI_SIZE", -1));
  return PLUGRAD_OK;
}

// Another library of the process, such as mpi4py, may have initialised MPI before.
plugrad_status initialise() {
  int is_up = 0, is_down = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_up);
  MPI_Finalized(&is_down);
  if (any_broken)
    return report(PLUGRAD_INVALID, "a group of this process broke, and MPI cannot be used again: restart the process");
  if (is_down) return report(PLUGRAD_INVALID, "MPI was finalised in this process, and cannot be initialised again");
  if (!is_up) {
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided))
      return report(PLUGRAD_INTERNAL, "MPI_Init_thread failed");
    initialised = true;
    return PLUGRAD_OK;
  }
  if (initialised) return PLUGRAD_OK;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE)
    return report(
        PLUGRAD_INVALID,
        "the program has initialised MPI without MPI_THREAD_MULTIPLE, which two threads that call it need: ask for "
        "it there (mpi4py does by default)");
  return PLUGRAD_OK;
}

// Waits until all ranks come, at most the timeout: the calls that make communicators would wait for ever.
plugrad_status gather(plugrad_group& group, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(group.timeout);
  if (const int error = MPI_Ibarrier(comm, &request)) return failed(group, error);
  for (int all = 0;;) {
    if (const int error = MPI_Test(&request, &all, MPI_STATUS_IGNORE)) return failed(group, error);
    if (all) return PLUGRAD_OK;
    if (group.broken) return refuse_broken(group);
    if (std::chrono::steady_clock::now() > end)
      return any_broken = true, report(PLUGRAD_TIMED_OUT, "a rank did not come within the time-out");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void describe(plugrad_group& group, int32_t* rank, int32_t* size) {
  MPI_Comm_set_errhandler(group.comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(group.comm, &group.rank);
  MPI_Comm_size(group.comm, &group.size);
  *rank = group.rank;
  *size = group.size;
}

plugrad_status open(const plugrad_host* given, const plugrad_group_options* options, plugrad_group** made, int32_t* rank,
                    int32_t* size) {
  host = given;
  if (options->options.count) return report(PLUGRAD_INVALID, "mpi has no options: its library reads its own variables");
  if (const plugrad_status status = initialise()) return status;
  auto group = std::make_unique<plugrad_group>();
  group->timeout = options->timeout;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const plugrad_status status = gather(*group, MPI_COMM_WORLD)) return status;
  if (const int error = MPI_Comm_dup(MPI_COMM_WORLD, &group->comm)) return failed(*group, error);
  describe(*group, rank, size);
  *made = group.release();
  return PLUGRAD_OK;
}

plugrad_status split(plugrad_group* group, int32_t color, uint64_t, plugrad_group** made, int32_t* rank, int32_t* size) {
  *made = nullptr;
  if (group->broken) return refuse_broken(*group);
  if (const plugrad_status status = gather(*group, group->comm)) return status;
  auto part = std::make_unique<plugrad_group>();
  part->timeout = group->timeout;
  if (const int error = MPI_Comm_split(group->comm, color < 0 ? MPI_UNDEFINED : color, group->rank, &part->comm))
    return failed(*group, error);
  if (part->comm == MPI_COMM_NULL) return PLUGRAD_OK;
  describe(*part, rank, size);
  *made = part.release();
  return PLUGRAD_OK;
}

plugrad_status failure(plugrad_group* group, plugrad_group_failure* failure) {
  failure->rank = group->failure.rank;
  std::snprintf(failure->why, sizeof failure->why, "%s", group->failure.why);
  return PLUGRAD_OK;
}

void abort(plugrad_group* group) {
  const std::lock_guard lock(group->mutex);
  if (group->broken) return;
  std::snprintf(group->failure.why, sizeof group->failure.why, "the group was aborted");
  any_broken = true;
  group->broken = true;
}

// Works of a broken group may still be in progress, so that group's communicator stays.
void close(plugrad_group* group) {
  int is_down = 0;
  MPI_Finalized(&is_down);
  if (group->broken || is_down) return;  // another user of MPI may have ended it
  MPI_Comm_free(&group->comm);
  delete group;
}

// After a failure, MPI_Finalize would wait for ever: the launcher ends the other ranks when this process ends without it.
void finish() {
  int is_down = 0;
  MPI_Finalized(&is_down);
  if (initialised && !is_down && !any_broken) MPI_Finalize();
}

#ifdef PLUGRAD_MPI_NAMES_RANKS
constexpr uint32_t kCapabilities = PLUGRAD_COMM_LAUNCHES | PLUGRAD_COMM_NAMES_RANKS;
#else
constexpr uint32_t kCapabilities = PLUGRAD_COMM_LAUNCHES;
#endif
char version[MPI_MAX_LIBRARY_VERSION_STRING];

}  // namespace

extern "C" const plugrad_communicator* plugrad_communicator_v0(const plugrad_host*) {
  static const plugrad_communicator table = {sizeof table,
                                             kCapabilities,
                                             PLUGRAD_COMMUNICATOR_LAYOUT,
                                             PLUGRAD_MPI,
                                             version,
                                             launched,
                                             open,
                                             split,
                                             start,
                                             test,
                                             nullptr,
                                             failure,
                                             abort,
                                             close,
                                             finish,
                                             0,
                                             0};
  int length = 0;
  MPI_Get_library_version(version, &length);
  *std::find_if(version, version + length, [](char c) { return c == ',' || c == '\n'; }) = 0;  // only the name
  return &table;
}
