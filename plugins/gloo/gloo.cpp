// The communicator "gloo": TCP between processes that any launcher started. The ranks meet by the host's store.
#include <plugins/gloo/collectives.hpp>
#include <plugins/gloo/connections.hpp>

#include <plugrad/sdk/backend.hpp>

#include <gloo/allgather.h>
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using std::chrono::milliseconds;

namespace {
// How long a rank has to answer when the others ask who is still there.
constexpr milliseconds kAnswer{1500};
constexpr uint64_t kSendSlot = uint64_t{0x70} << 56, kAskSlot = uint64_t{0x71} << 56;  // no collective of Gloo has these

const plugrad_host* host = nullptr;  // set by open; all hosts of a process are one core

plugrad_status report(plugrad_status status, const char* why) {
  host->report(host, status, why);
  return status;
}

// The host's store, with a prefix for one set of connections.
class HostStore final : public gloo::rendezvous::Store {
 public:
  HostStore(const plugrad_store& store, uint64_t timeout, std::string prefix)
      : store_(store), timeout_(timeout), prefix_(std::move(prefix)) {}
  void set(const std::string& key, const std::vector<char>& value) override {
    if (store_.set(&store_, (prefix_ + key).c_str(), value.data(), value.size()))
      throw gloo::IoException("the store does not take " + prefix_ + key);
  }
  std::vector<char> get(const std::string& key) override {
    std::vector<char> value(1 << 12);
    for (;;) {
      uint64_t size = 0;
      if (store_.get(&store_, (prefix_ + key).c_str(), value.data(), value.size(), &size, timeout_))
        throw gloo::IoException("a rank did not come: the store has no " + prefix_ + key);
      const bool is_whole = size <= value.size();
      value.resize(size);
      if (is_whole) return value;
    }
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& each : keys) get(each);
  }
  void wait(const std::vector<std::string>& keys, const milliseconds&) override { wait(keys); }

 private:
  const plugrad_store& store_;
  uint64_t timeout_;
  std::string prefix_;
};

}  // namespace

struct plugrad_group {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<Connections> context;
  // Only to ask who is still there: a time-out closes all connections of a context.
  std::shared_ptr<Connections> control;
  const plugrad_store* store = nullptr;
  uint64_t timeout = 0;
  std::string prefix;  // of the keys in the store
  // Why the group broke: the first reason.
  void break_by(const char* reason) {
    const std::lock_guard lock(mutex);
    if (broken) return;
    why = reason;
    broken = true;
  }
  std::mutex mutex;
  std::atomic<bool> broken{false};
  std::string why;  // written before broken
};

// A send or a receive; collectives have ended when start returns.
struct plugrad_work {
  plugrad_group* group = nullptr;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  bool sends = false;
};

namespace {

plugrad_status failed(plugrad_group& group, const std::exception& error) {
  group.break_by(error.what());
  const bool late = std::string_view(error.what()).find("imed out") != std::string_view::npos;
  return report(late ? PLUGRAD_TIMED_OUT : PLUGRAD_PEER_LOST, error.what());
}

// The address at which other ranks reach this process.
gloo::transport::tcp::attr address(const plugrad_group_options& options) {
  gloo::transport::tcp::attr attr;
  const plugrad::Options given(&options.options);
  const auto text = [&](const char* key) { return std::string(given.find(key) ? given.find(key) : ""); };
  attr.iface = text("interface");
  attr.hostname = text("address");
  if (attr.iface.empty() && attr.hostname.empty() && options.local_size == options.size) attr.hostname = "127.0.0.1";
  return attr;
}

std::shared_ptr<Connections> connected(const plugrad_group& group, int rank, int size, const char* what) {
  HostStore store(*group.store, group.timeout, group.prefix + what);
  return std::make_shared<Connections>(rank, size, store, group.device, milliseconds(group.timeout));
}

void connect(plugrad_group& group, int rank, int size) {
  group.context = connected(group, rank, size, ".");
  group.control = connected(group, rank, size, ".control.");
}

std::unique_ptr<gloo::transport::UnboundBuffer> exchange(plugrad_group& group, const plugrad_collective& c) {
  const bool sends = c.kind == PLUGRAD_COLL_SEND;
  const uint64_t slot = kSendSlot | c.fingerprint >> 8;
  auto buffer = group.context->createUnboundBuffer(sends ? input(c) : c.to, c.count * c.item);
  if (sends) buffer->send(c.peer, slot);
  else buffer->recv(c.peer, slot);
  return buffer;
}

plugrad_status refuse_broken(const plugrad_group& group) { return report(PLUGRAD_PEER_LOST, group.why.c_str()); }

plugrad_status start(plugrad_group* group, const plugrad_collective* c, plugrad_work** work) {
  if (group->broken) return refuse_broken(*group);
  try {
    auto made = std::make_unique<plugrad_work>();
    made->group = group;
    made->sends = c->kind == PLUGRAD_COLL_SEND;
    if (made->sends || c->kind == PLUGRAD_COLL_RECV) made->buffer = exchange(*group, *c);
    else if (!run(group->context, *c)) return report(PLUGRAD_UNSUPPORTED, "gloo has no such collective for this dtype");
    *work = made.release();
    return PLUGRAD_OK;
  } catch (const std::exception& error) {
    return failed(*group, error);
  }
}

plugrad_status wait(plugrad_work* work, uint64_t most) {
  const std::unique_ptr<plugrad_work> owned(work);
  if (!work->buffer) return PLUGRAD_OK;
  try {
    const bool ended = work->sends ? work->buffer->waitSend(milliseconds(most)) : work->buffer->waitRecv(milliseconds(most));
    return ended ? PLUGRAD_OK : report(PLUGRAD_PEER_LOST, "the group was aborted");
  } catch (const std::exception& error) {
    return failed(*work->group, error);
  }
}

// --- Groups.

plugrad_status launched(const plugrad_host*, int32_t* rank, int32_t* size) {
  *rank = *size = -1;
  return PLUGRAD_OK;
}

plugrad_status open(const plugrad_host* given, const plugrad_group_options* options, plugrad_group** made, int32_t* rank,
                    int32_t* size) {
  host = given;
  if (!options->store || options->rank < 0 || options->size < 1)
    return report(PLUGRAD_INVALID, "gloo needs a rank, a size and a store");
  try {
    plugrad::Options(&options->options).allow({"interface", "address"});
  } catch (const std::exception& error) {
    return report(PLUGRAD_INVALID, error.what());
  }
  auto group = std::make_unique<plugrad_group>();
  try {
    group->store = options->store;
    group->timeout = options->timeout;
    group->prefix = "gloo." + std::to_string(options->generation);
    group->device = gloo::transport::tcp::CreateDevice(address(*options));
    connect(*group, options->rank, options->size);
  } catch (const std::exception& error) {
    return report(PLUGRAD_PEER_LOST, error.what());
  }
  *rank = options->rank;
  *size = options->size;
  *made = group.release();
  return PLUGRAD_OK;
}

std::vector<int32_t> colors_of(plugrad_group& group, int32_t color, uint64_t number) {
  std::vector<int32_t> colors(static_cast<size_t>(group.context->size));
  gloo::AllgatherOptions options(group.context);
  options.setInput(&color, 1);
  options.setOutput(colors.data(), colors.size());
  options.setTag(static_cast<uint32_t>(number * 0x9e3779b9u));
  gloo::allgather(options);
  return colors;
}

plugrad_status split(plugrad_group* group, int32_t color, uint64_t number, plugrad_group** made, int32_t* rank,
                     int32_t* size) {
  *made = nullptr;
  if (group->broken) return refuse_broken(*group);
  try {
    const std::vector<int32_t> colors = colors_of(*group, color, number);
    if (color < 0) return PLUGRAD_OK;
    *rank = *size = 0;
    for (size_t i = 0; i < colors.size(); ++i) {
      if (colors[i] != color) continue;
      if (i < static_cast<size_t>(group->context->rank)) ++*rank;
      ++*size;
    }
    auto part = std::make_unique<plugrad_group>();
    part->store = group->store;
    part->timeout = group->timeout;
    part->device = group->device;
    part->prefix = group->prefix + "." + std::to_string(number) + "_" + std::to_string(color);
    connect(*part, *rank, *size);
    *made = part.release();
    return PLUGRAD_OK;
  } catch (const std::exception& error) {
    return failed(*group, error);
  }
}

// Sends a byte to each rank, and waits for the byte of each.
void ask(Connections& control, uint8_t* silent) {
  const auto size = static_cast<size_t>(control.size);
  char out = 1;
  std::vector<char> in(size);
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> answers(size);
  auto question = control.createUnboundBuffer(&out, 1);
  for (int i = 0; i < control.size; ++i) {
    const auto at = static_cast<size_t>(i);
    if (i == control.rank) continue;
    silent[i] = 1;
    try {
      answers[at] = control.createUnboundBuffer(&in[at], 1);
      answers[at]->recv(i, kAskSlot);
      question->send(i, kAskSlot);
    } catch (const std::exception&) {  // its connection is closed
      answers[at].reset();
    }
  }
  std::this_thread::sleep_for(kAnswer);  // the first wait without an answer breaks all connections: all answers come before
  for (size_t i = 0; i < size; ++i) {
    if (!answers[i]) continue;
    try {
      if (answers[i]->waitRecv(milliseconds(1))) silent[i] = 0;
    } catch (const std::exception&) {  // no answer
    }
  }
}

plugrad_status failure(plugrad_group* group, plugrad_group_failure* failure) {
  failure->rank = -1;
  std::snprintf(failure->why, sizeof failure->why, "%s", group->broken ? group->why.c_str() : "");
  if (failure->silent && group->control) ask(*group->control, failure->silent);
  return PLUGRAD_OK;
}

void abort(plugrad_group* group) {
  group->break_by("the group was aborted");
  group->context->abort();
  group->context->closeConnections();
}

void close(plugrad_group* group) {
  // Buffers of unfinished works may still point to the context.
  if (!group->broken) group->context->closeConnections();
  group->control->closeConnections();
  delete group;
}

}  // namespace

extern "C" const plugrad_communicator* plugrad_communicator_v0(const plugrad_host*) {
  static const std::string version = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." +
                                     std::to_string(GLOO_VERSION_MINOR) + "." + std::to_string(GLOO_VERSION_PATCH);
  static const plugrad_communicator table = {sizeof table,
                                             0,
                                             PLUGRAD_COMMUNICATOR_LAYOUT,
                                             "gloo",
                                             version.c_str(),
                                             launched,
                                             open,
                                             split,
                                             start,
                                             nullptr,
                                             wait,
                                             failure,
                                             abort,
                                             close,
                                             nullptr,
                                             0,
                                             0};
  return &table;
}
