// Replaces NCCL on the emulator: the functions that the communicator nccl opens, between processes of one machine by files
// of a folder. They check every argument, and the rules of non-blocking communicators: no call before the one before is
// done, and all calls but abort on one thread. A wrong call ends the process, and a wrong address fails the stream as a
// kernel's fault does. As in NCCL, a collective whose ranks do not all come waits until the communicator is aborted, and a
// message is sent once it is received.
#include <tests/nccl/board.hpp>

#include <plugins/nccl/libraries.hpp>

#include <plugrad/sdk/dtypes.hpp>
#include <simt/library.hpp>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#define CHECKED extern "C" __attribute__((visibility("default")))

namespace nccl {
namespace {
using plugrad::test::Board;

[[noreturn]] void misuse(const std::string& what) {
  std::fprintf(stderr, "checking NCCL: %s\n", what.c_str());
  std::abort();
}

// What outlives a communicator, as its work on streams may.
struct Shared {
  Board board;
  int rank, ranks;
  std::atomic<bool> aborted{false};
  std::atomic<uint64_t> done = 0;  // collectives: each waits for the one before, whatever its stream
};

// A message, or a side of a collective, as NCCL's call gave it.
struct Message {
  bool sends;
  void* memory;
  size_t bytes;
  int peer;
};
}  // namespace

struct Comm {
  std::shared_ptr<Shared> shared;
  std::thread::id thread = std::this_thread::get_id();
  int polls = 2;  // for which it stays in progress
  bool is_ready = false, is_finalized = false;
  uint64_t calls = 0, collectives = 0;
  std::vector<uint64_t> sent, received;  // by peer
};

namespace {
// The messages between group_start and group_end.
struct Group {
  int depth = 0;
  Comm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Message> messages;
};
thread_local Group group;

cudaStream_t of(Stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }

const Comm& usable(const Comm* comm, const char* function) {
  if (!comm) misuse(std::string(function) + " without a communicator");
  if (comm->thread != std::this_thread::get_id()) misuse(std::string(function) + " on another thread");
  if (!comm->is_ready || comm->polls) misuse(std::string(function) + " while the call before is in progress");
  if (comm->is_finalized) misuse(std::string(function) + " after finalize");
  return *comm;
}

// Every third call goes on behind the caller's back.
Result begun(Comm& comm) {
  if (++comm.calls % 3) return kSuccess;
  comm.polls = 2;
  return kInProgress;
}

uint8_t dtype_of(int type) {
  switch (type) {
    case kInt8: return PLUGRAD_I8;
    case kUint8: return PLUGRAD_U8;
    case kInt32: return PLUGRAD_I32;
    case kInt64: return PLUGRAD_I64;
    case kFloat16: return PLUGRAD_F16;
    case kFloat32: return PLUGRAD_F32;
    case kFloat64: return PLUGRAD_F64;
    case kBFloat16: return PLUGRAD_BF16;
    default: misuse("there is no type " + std::to_string(type));
  }
}
size_t bytes_of(size_t count, int type) { return count * static_cast<size_t>(plugrad::element_size(dtype_of(type))); }

void demand(cudaStream_t stream, const void* memory, size_t bytes, const char* what) {
  const simt::Library& library = simt::library_of(stream);
  if (bytes && !library.covers(stream, memory, bytes))
    library.fail(std::string("checking NCCL: ") + what + " touches " + library.describe(stream, memory));
}

template <class T> T reduced(T a, T b, int how) {
  if (how == kMax) return std::max(a, b);
  if (how == kMin) return std::min(a, b);
  return how == kProduct ? a * b : a + b;
}

void reduce(const std::vector<std::string>& rows, size_t begin, size_t count, int type, int how, void* to) {
  plugrad::with_element_type(dtype_of(type), [&]<class T>(T) {
    using Compute = plugrad::ComputeType<T>;
    const auto element = [&](size_t row, size_t i) {
      T value;
      std::memcpy(&value, rows[row].data() + (begin + i) * sizeof(T), sizeof(T));
      return static_cast<Compute>(value);
    };
    for (size_t i = 0; i < count; ++i) {
      Compute sum = element(0, i);
      for (size_t row = 1; row < rows.size(); ++row) sum = reduced<Compute>(sum, element(row, i), how);
      if (how == kAverage) sum = static_cast<Compute>(sum / static_cast<Compute>(rows.size()));
      const T value = static_cast<T>(sum);
      std::memcpy(static_cast<char*>(to) + i * sizeof(T), &value, sizeof(T));
    }
  });
}

// One collective on a stream: all ranks tell what they call and their elements; `then` makes the result of all elements.
struct Collective {
  std::string what;
  const void* from;
  size_t from_bytes;
  void* to;
  size_t to_bytes;
  std::function<void(const std::vector<std::string>& rows)> then;
};

// A collective under way: its stages share it.
struct Exchange {
  std::shared_ptr<Shared> all;
  Collective call;
  uint64_t number;
  std::vector<std::string> rows;  // of all ranks, once all are there

  std::string name(int rank) const { return std::to_string(number) + "." + std::to_string(rank); }
  void wait_for_turn() const {
    while (all->done + 1 < number && !all->aborted) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  void tell(cudaStream_t stream) const {
    demand(stream, call.from, call.from_bytes, "the input");
    demand(stream, call.to, call.to_bytes, "the output");
    all->board.post(name(all->rank), call.what + "\n" + std::string(static_cast<const char*>(call.from), call.from_bytes));
  }
  void collect() {
    const std::string head = call.what + "\n";
    std::vector<std::string> found(static_cast<size_t>(all->ranks));
    for (int i = 0; i < all->ranks; ++i) {
      std::string& row = found[static_cast<size_t>(i)];
      if (!all->board.take(name(i), row, all->aborted)) return;
      if (!row.starts_with(head))
        misuse("rank " + std::to_string(all->rank) + " calls " + call.what + ", rank " + std::to_string(i) + " " +
               row.substr(0, row.find('\n')));
      row.erase(0, head.size());
    }
    rows = std::move(found);
  }
  void end() const {
    if (rows.empty()) return;  // aborted
    call.then(rows);
    // All ranks have begun this collective, so all have read the one before.
    all->done = number;
    if (number > 1) all->board.remove(std::to_string(number - 1) + "." + std::to_string(all->rank));
  }
};

Result submit(Comm* comm, Stream* stream, const char* function, Collective c) {
  usable(comm, function);
  if (group.depth) misuse(std::string(function) + " in a group");
  const auto all = std::make_shared<Exchange>(Exchange{comm->shared, std::move(c), ++comm->collectives, {}});
  const cudaStream_t s = of(stream);
  const simt::Library& library = simt::library_of(s);
  library.wait(s, [all] { all->wait_for_turn(); });
  library.submit(s, [all, s] { all->tell(s); });
  library.wait(s, [all] { all->collect(); });
  library.submit(s, [all] { all->end(); });
  return begun(*comm);
}

std::string named(const char* function, size_t count, int type, int how) {
  if (how < kSum || how > kAverage) misuse("there is no reduction " + std::to_string(how));
  return std::string(function) + " " + std::to_string(count) + " " + std::to_string(type) + " " + std::to_string(how);
}

// The messages of a group: posts what is sent, takes what is received, then waits until all that was sent is taken.
struct Exchanges {
  std::shared_ptr<const Shared> all;
  std::vector<Message> list;
  std::vector<std::string> names, bytes;

  void send(cudaStream_t stream) const {
    for (size_t i = 0; i < list.size(); ++i) {
      demand(stream, list[i].memory, list[i].bytes, list[i].sends ? "a message" : "the place of a message");
      if (list[i].sends) all->board.post(names[i], std::string(static_cast<const char*>(list[i].memory), list[i].bytes));
    }
  }
  void receive() {
    bytes.resize(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].sends || !all->board.take(names[i], bytes[i], all->aborted)) continue;
      if (bytes[i].size() != list[i].bytes) misuse("a message of another size");
      all->board.remove(names[i]);
    }
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].sends) all->board.wait_until_gone(names[i], all->aborted);
  }
  void store() const {
    for (size_t i = 0; i < list.size(); ++i)
      if (!bytes[i].empty()) std::memcpy(list[i].memory, bytes[i].data(), bytes[i].size());
  }
};

Result end_group() {
  Group ended = std::exchange(group, {});
  if (ended.messages.empty()) return kSuccess;
  Comm& comm = *ended.comm;
  std::vector<std::string> names;
  for (const Message& each : ended.messages) {
    const auto peer = static_cast<size_t>(each.peer);
    const int from = each.sends ? comm.shared->rank : each.peer, to = each.sends ? each.peer : comm.shared->rank;
    const uint64_t number = ++(each.sends ? comm.sent : comm.received)[peer];
    names.push_back("m" + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(number));
  }
  const auto all = std::make_shared<Exchanges>(Exchanges{comm.shared, std::move(ended.messages), std::move(names), {}});
  const cudaStream_t s = ended.stream;
  const simt::Library& library = simt::library_of(s);
  library.submit(s, [all, s] { all->send(s); });
  library.wait(s, [all] { all->receive(); });
  library.submit(s, [all] { all->store(); });
  return begun(comm);
}

Result add_message(Comm* comm, Stream* stream, const char* function, Message message) {
  usable(comm, function);
  if (message.peer < 0 || message.peer >= comm->shared->ranks) misuse(std::string(function) + ": no such rank");
  if (group.comm && (group.comm != comm || group.stream != of(stream))) misuse("a group of two communicators");
  group.comm = comm;
  group.stream = of(stream);
  group.messages.push_back(message);
  return group.depth ? kSuccess : end_group();
}
}  // namespace
}  // namespace nccl

using namespace nccl;

CHECKED Result ncclGetVersion(int* version) { return *version = 22703, kSuccess; }
CHECKED const char* ncclGetErrorString(Result result) { return result ? "an error" : "no error"; }
CHECKED const char* ncclGetLastError(Comm*) { return ""; }

CHECKED Result ncclGetUniqueId(UniqueId* id) {
  *id = {};
  std::string folder = std::filesystem::temp_directory_path() / "checking-nccl-XXXXXX";
  if (!mkdtemp(folder.data()) || folder.size() >= sizeof id->bytes) misuse("no folder for the identity");
  folder.copy(id->bytes, sizeof id->bytes - 1);
  return kSuccess;
}

CHECKED Result ncclCommInitRankConfig(Comm** made, int ranks, UniqueId id, int rank, Config* config) {
  if (rank < 0 || rank >= ranks) misuse("rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  if (config->size < sizeof *config || config->magic != kMagic || config->version < kVersion || config->blocking)
    misuse("a non-blocking configuration expected");
  auto comm = std::make_unique<Comm>();
  comm->shared = std::make_shared<Shared>(Board(id.bytes), rank, ranks);
  comm->sent.resize(static_cast<size_t>(ranks));
  comm->received.resize(static_cast<size_t>(ranks));
  comm->shared->board.post("rank" + std::to_string(rank), "");
  *made = comm.release();
  return kInProgress;
}

CHECKED Result ncclCommGetAsyncError(Comm* comm, Result* result) {
  *result = kInProgress;
  const auto is_here = [&](int i) { return comm->shared->board.has("rank" + std::to_string(i)); };
  for (int i = 0; i < comm->shared->ranks && !comm->is_ready; ++i)
    if (!is_here(i)) return kSuccess;
  comm->is_ready = true;
  if (comm->polls && --comm->polls) return kSuccess;
  *result = kSuccess;
  return kSuccess;
}

CHECKED Result ncclCommFinalize(Comm* comm) {
  usable(comm, "ncclCommFinalize");
  comm->is_finalized = true;
  comm->polls = 2;
  comm->shared->board.post("left" + std::to_string(comm->shared->rank), "");
  return kInProgress;
}
CHECKED Result ncclCommDestroy(Comm* comm) {
  if (!comm->is_finalized || comm->polls) misuse("ncclCommDestroy before finalize has ended");
  bool all_left = true;
  for (int i = 0; i < comm->shared->ranks; ++i) all_left &= comm->shared->board.has("left" + std::to_string(i));
  if (all_left) comm->shared->board.clear();
  delete comm;
  return kSuccess;
}
CHECKED Result ncclCommAbort(Comm* comm) {
  comm->shared->aborted = true;
  comm->shared->board.clear();
  delete comm;
  return kSuccess;
}

CHECKED Result ncclBroadcast(const void* from, void* to, size_t count, int type, int root, Comm* comm, Stream* stream) {
  const size_t bytes = bytes_of(count, type);
  usable(comm, "ncclBroadcast");
  if (root < 0 || root >= comm->shared->ranks) misuse("ncclBroadcast: no such root");
  const bool sends = root == comm->shared->rank;
  return submit(comm, stream, "ncclBroadcast",
                {"broadcast " + std::to_string(bytes) + " " + std::to_string(root), from, sends ? bytes : 0, to, bytes,
                 [=](const auto& rows) { std::memcpy(to, rows[static_cast<size_t>(root)].data(), bytes); }});
}
CHECKED Result ncclAllReduce(const void* from, void* to, size_t count, int type, int how, Comm* comm, Stream* stream) {
  const size_t bytes = bytes_of(count, type);
  return submit(comm, stream, "ncclAllReduce",
                {named("all_reduce", count, type, how), from, bytes, to, bytes,
                 [=](const auto& rows) { reduce(rows, 0, count, type, how, to); }});
}
CHECKED Result ncclReduceScatter(const void* from, void* to, size_t count, int type, int how, Comm* comm, Stream* stream) {
  usable(comm, "ncclReduceScatter");
  const size_t bytes = bytes_of(count, type), begin = static_cast<size_t>(comm->shared->rank) * count;
  return submit(comm, stream, "ncclReduceScatter",
                {named("reduce_scatter", count, type, how), from, bytes * static_cast<size_t>(comm->shared->ranks), to,
                 bytes, [=](const auto& rows) { reduce(rows, begin, count, type, how, to); }});
}
CHECKED Result ncclAllGather(const void* from, void* to, size_t count, int type, Comm* comm, Stream* stream) {
  usable(comm, "ncclAllGather");
  const size_t bytes = bytes_of(count, type);
  return submit(comm, stream, "ncclAllGather",
                {"all_gather " + std::to_string(bytes), from, bytes, to, bytes * static_cast<size_t>(comm->shared->ranks),
                 [=](const auto& rows) {
                   for (size_t i = 0; i < rows.size(); ++i)
                     std::memcpy(static_cast<char*>(to) + i * bytes, rows[i].data(), bytes);
                 }});
}
CHECKED Result ncclSend(const void* from, size_t count, int type, int peer, Comm* comm, Stream* stream) {
  return add_message(comm, stream, "ncclSend", {true, const_cast<void*>(from), bytes_of(count, type), peer});
}
CHECKED Result ncclRecv(void* to, size_t count, int type, int peer, Comm* comm, Stream* stream) {
  return add_message(comm, stream, "ncclRecv", {false, to, bytes_of(count, type), peer});
}
CHECKED Result ncclGroupStart() { return ++group.depth, kSuccess; }
CHECKED Result ncclGroupEnd() { return --group.depth ? kSuccess : end_group(); }

// The communicator's declarations are those of these functions.
static_assert(std::is_same_v<decltype(&ncclCommInitRankConfig), decltype(Functions::init_rank)>);
static_assert(std::is_same_v<decltype(&ncclBroadcast), decltype(Functions::broadcast)>);
static_assert(std::is_same_v<decltype(&ncclAllReduce), decltype(Functions::all_reduce)>);
static_assert(std::is_same_v<decltype(&ncclReduceScatter), decltype(Functions::reduce_scatter)>);
static_assert(std::is_same_v<decltype(&ncclAllGather), decltype(Functions::all_gather)>);
static_assert(std::is_same_v<decltype(&ncclSend), decltype(Functions::send)>);
static_assert(std::is_same_v<decltype(&ncclRecv), decltype(Functions::recv)>);
