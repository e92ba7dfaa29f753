#include <plugins/nccl/connection.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

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
  void* context = nullptr;
  require(driver().device(&device, index), "cuDeviceGet");
  require(driver().retain_context(&context, device), "cuDevicePrimaryCtxRetain");
  require(driver().set_context(context), "cuCtxSetCurrent");
  index_ = index;
  if (wanted >= 0) choose(wanted);
}

Connection::Connection(const plugrad_store& store, std::string key, int rank, int size)
    : store_(store), key_(std::move(key)), rank_(rank), size_(size) {
  require(driver().create_stream(&stream_, kNonBlocking), "cuStreamCreate");
}

Connection::~Connection() {
  abort();
  driver().destroy_stream(stream_);
}

void Connection::check(Result result) const {
  if (result == kSuccess || result == kInProgress) return;
  std::string text = functions().error_string(result);
  if (const char* more = comm_ ? functions().last_error(comm_) : nullptr; more && *more) text += std::string(": ") + more;
  throw Failure{PLUGRAD_PEER_LOST, text};
}

// Returns whether the identity is known.
bool Connection::begin() {
  UniqueId id{};
  if (rank_ == 0) {
    check(functions().get_unique_id(&id));
    if (store_.set(&store_, key_.c_str(), &id, sizeof id))
      throw Failure{PLUGRAD_PEER_LOST, "the store does not take " + key_};
  } else {
    uint64_t size = 0;
    const plugrad_status status = store_.get(&store_, key_.c_str(), &id, sizeof id, &size, 0);
    if (status == PLUGRAD_TIMED_OUT) return false;
    if (status || size != sizeof id) throw Failure{PLUGRAD_PEER_LOST, "the store has no " + key_};
  }
  Config config{sizeof(Config), kMagic, kVersion, 0};
  check(functions().init_rank(&comm_, size_, id, rank_, &config));
  return true;
}

bool Connection::advance() {
  if (!comm_ && !begin()) return false;
  Result result = kSuccess;
  check(functions().async_error(comm_, &result));
  check(result);
  return result == kSuccess;
}

void Connection::abort() noexcept {
  if (comm_) functions().abort(std::exchange(comm_, nullptr));
}

void Connection::close(uint64_t milliseconds) noexcept {
  if (!comm_) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  Result result = functions().finalize(comm_);
  while (result == kInProgress && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (functions().async_error(comm_, &result)) break;
  }
  if (result == kSuccess) functions().destroy(std::exchange(comm_, nullptr));
  abort();
}

}  // namespace nccl
