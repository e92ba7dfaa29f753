// Sends and receives of groups. Each goes through its stages while the communication thread waits for something else.
#include <plugins/nccl/group.hpp>

#include <algorithm>
#include <cstring>
#include <set>

using nccl::Connection;
using nccl::Failure;
using nccl::require;
using Clock = std::chrono::steady_clock;
using Stage = plugrad_work::Stage;

namespace {
const nccl::Driver& driver() { return nccl::libraries().driver; }
constexpr std::chrono::microseconds kLongestNap{5000};
nccl::DeviceAddress device_of(const plugrad_work& work) { return reinterpret_cast<nccl::DeviceAddress>(work.block.device); }
}  // namespace

Connection& plugrad_group::channel(const plugrad_collective& message) {
  const bool sends = message.kind == PLUGRAD_COLL_SEND;
  auto& found = (sends ? to_ : of_)[message.peer];
  const int from = sends ? rank_ : message.peer, to = sends ? message.peer : rank_;
  const std::string key = prefix_ + ".message." + std::to_string(from) + "." + std::to_string(to);
  if (!found) found = std::make_unique<Connection>(store_, gate_, key, sends ? 0 : 1, 2);
  return *found;
}

// Whether both ranks have come to the message.
bool plugrad_group::has_met(plugrad_work& work) {
  const plugrad_collective& c = work.message;
  const bool sends = c.kind == PLUGRAD_COLL_SEND;
  const int from = sends ? rank_ : c.peer, to = sends ? c.peer : rank_;
  const std::string key =
      prefix_ + ".message." + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(c.number) + ".";
  if (work.stage == Stage::called) {
    if (store_.set(&store_, (key + (sends ? "send" : "recv")).c_str(), "1", 1))
      throw Failure{PLUGRAD_PEER_LOST, "the store does not take a message"};
    work.stage = Stage::told;
  }
  const auto now = Clock::now();
  if (work.stage == Stage::told && now >= work.next_look) {
    work.next_look = now + work.nap;
    work.nap = std::min(2 * work.nap, kLongestNap);
    char text[8] = "";
    uint64_t size = 0;
    const plugrad_status status =
        store_.get(&store_, (key + (sends ? "recv" : "send")).c_str(), text, sizeof text, &size, 0);
    if (status && status != PLUGRAD_TIMED_OUT) throw Failure{PLUGRAD_PEER_LOST, "the store cannot be reached"};
    if (!status) work.stage = Stage::met;
  }
  return work.stage >= Stage::met;
}

void plugrad_group::begin_message(plugrad_work& work) {
  const plugrad_collective& c = work.message;
  const bool sends = c.kind == PLUGRAD_COLL_SEND;
  const size_t bytes = c.count * c.item;
  nccl::Stream* const stream = work.connection->stream();
  work.block = staging_.take(bytes);
  if (sends) {
    std::memcpy(work.block.host, c.from, bytes);
    require(driver().upload(device_of(work), work.block.host, bytes, stream), "cuMemcpyHtoDAsync");
  }
  const nccl::Functions& f = nccl::libraries().nccl;
  work.connection->call([&](nccl::Comm* comm) {
    return sends ? f.send(work.block.device, bytes, nccl::kUint8, 1, comm, stream)
                 : f.recv(work.block.device, bytes, nccl::kUint8, 0, comm, stream);
  });
  work.stage = Stage::begun;
}

// Its kernel is on the stream.
void plugrad_group::end_message(plugrad_work& work) {
  nccl::Stream* const stream = work.connection->stream();
  if (work.message.kind == PLUGRAD_COLL_RECV) {
    work.to = work.message.to;
    work.bytes = work.message.count * work.message.item;
    require(driver().download(work.block.host, device_of(work), work.bytes, stream), "cuMemcpyDtoHAsync");
  }
  require(driver().create_event(&work.end, nccl::kDisableTiming), "cuEventCreate");
  require(driver().record(work.end, stream), "cuEventRecord");
}

// Messages of one connection go in their order.
void plugrad_group::advance_messages() {
  std::set<const Connection*> busy;
  for (auto each = messages_.begin(); each != messages_.end();) {
    plugrad_work& work = **each;
    if (busy.contains(work.connection) || !has_met(work) || !work.connection->advance()) {
      busy.insert(work.connection);
      ++each;
      continue;
    }
    if (work.stage != Stage::begun) {
      begin_message(work);
      continue;
    }
    end_message(work);
    each = messages_.erase(each);
  }
}
