#include <plugins/nccl/connection.hpp>

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <thread>

namespace nccl {
namespace {

const Functions& functions() { return libraries().nccl; }
const Driver& driver() { return libraries().driver; }

int local_rank() {
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return 0;
}

}  // namespace

void require(int result, const char* function) {
  if (!result) return;
  const char* text = nullptr;
  if (driver().error_string(result, &text)) text = nullptr;
  throw Failure{PLUGRAD_INTERNAL, std::string(function) + ": " + (text ? text : std::to_string(result))};
}

OwnDevice& own_device() {
  static OwnDevice device;
  return device;
}

void OwnDevice::choose(int wanted) {
  if (index_ >= 0) {
    if (wanted < 0 || wanted == index_) return;
    throw Failure{
        PLUGRAD_INVALID,
        "memory of CUDA device " + std::to_string(wanted) + ", but this process uses device " + std::to_string(index_) +
            " for NCCL: use one device for each rank, or set PLUGRAD_NCCL_OPTIONS=device=" + std::to_string(wanted)};
  }
  int devices = 0, device = 0;
  require(driver().count(&devices), "cuDeviceGetCount");
  if (!devices) throw Failure{PLUGRAD_INVALID, "there is no CUDA device"};
  const int index = option_ >= 0 ? option_ : wanted >= 0 ? wanted : local_rank() % devices;
  require(driver().device(&device, index), "cuDeviceGet");
  require(driver().retain_context(&context_, device), "cuDevicePrimaryCtxRetain");
  require(driver().set_context(context_), "cuCtxSetCurrent");
  index_ = index;
  if (wanted >= 0) choose(wanted);
}

void OwnDevice::enter() const {
  if (context_) driver().set_context(context_);
}

Connection::Connection(const plugrad_store& store, Gate& gate, std::string key, int rank, int size)
    : store_(store), gate_(gate), key_(std::move(key)), rank_(rank), size_(size) {
  require(driver().create_stream(&stream_, kNonBlocking), "cuStreamCreate");
}

Connection::~Connection() { driver().destroy_stream(stream_); }

void Connection::require_whole() const {
  if (gate_.broken) throw Failure{PLUGRAD_PEER_LOST, "the group was aborted"};
}

void Connection::check(Result result) const {
  if (result == kSuccess || result == kInProgress) return;
  std::string text = functions().error_string(result);
  if (const char* more = comm_ ? functions().last_error(comm_) : nullptr; more && *more) text += std::string(": ") + more;
  throw Failure{PLUGRAD_PEER_LOST, text};
}

// Returns whether the identity is known.
bool Connection::find_id(UniqueId& id) const {
  if (rank_ == 0) {
    check(functions().get_unique_id(&id));
    if (store_.set(&store_, key_.c_str(), &id, sizeof id))
      throw Failure{PLUGRAD_PEER_LOST, "the store does not take " + key_};
    return true;
  }
  uint64_t size = 0;
  const plugrad_status status = store_.get(&store_, key_.c_str(), &id, sizeof id, &size, 0);
  if (status == PLUGRAD_TIMED_OUT) return false;
  if (status || size != sizeof id) throw Failure{PLUGRAD_PEER_LOST, "the store has no " + key_};
  return true;
}

bool Connection::advance() {
  if (!comm_) {
    UniqueId id{};
    if (!find_id(id)) return false;
    Config config{sizeof(Config), kMagic, kVersion, 0};
    const std::lock_guard lock(gate_.mutex);
    require_whole();
    check(functions().init_rank(&comm_, size_, id, rank_, &config));
  }
  Result result = kSuccess;
  call([&](Comm* comm) { return functions().async_error(comm, &result); });
  check(result);
  return result == kSuccess;
}

void end(const std::vector<Comm*>& comms, Result (*how)(Comm*), std::chrono::milliseconds most) {
  struct Ends {
    std::mutex mutex;
    std::condition_variable changed;
    size_t left;
  };
  const auto ends = std::make_shared<Ends>();
  ends->left = comms.size();
  for (Comm* each : comms)
    std::thread([=] {
      own_device().enter();
      how(each);
      const std::lock_guard lock(ends->mutex);
      --ends->left;
      ends->changed.notify_all();
    }).detach();
  std::unique_lock lock(ends->mutex);
  ends->changed.wait_for(lock, most, [&] { return ends->left == 0; });
}

}  // namespace nccl
