#include <sdk/conformance/communicator_rank.hpp>

#include <plugrad/sdk/dtypes.hpp>
#include <process/file_text.hpp>
#include <sdk/conformance/plugin.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace plugrad::conformance {
namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string path_of(const plugrad_store* store, const char* key) {
  return *static_cast<const std::string*>(store->context) + "/key." + key;
}

// A value appears whole, and the first one stays.
plugrad_status set(const plugrad_store* store, const char* key, const void* bytes, uint64_t size) {
  const std::string path = path_of(store, key), part = path + "." + std::to_string(getpid());
  std::ofstream(part, std::ios::binary).write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  std::error_code exists;
  std::filesystem::create_hard_link(part, path, exists);
  std::filesystem::remove(part);
  return PLUGRAD_OK;
}

plugrad_status get(const plugrad_store* store, const char* key, void* bytes, uint64_t capacity, uint64_t* size,
                   uint64_t most) {
  const auto end = Clock::now() + milliseconds(most);
  do {
    if (const auto value = file_text(path_of(store, key))) {
      *size = value->size();
      std::memcpy(bytes, value->data(), std::min<uint64_t>(capacity, value->size()));
      return PLUGRAD_OK;
    }
    std::this_thread::sleep_for(milliseconds(2));
  } while (Clock::now() < end);
  return PLUGRAD_TIMED_OUT;
}
}  // namespace

const plugrad_communicator& load_communicator(const std::string& path) {
  constexpr const char* kEntry = "plugrad_communicator_v0";
  if (exported_symbols(path) != std::vector<std::string>{kEntry})
    throw Unloadable(path + ": it must export " + kEntry + ", and nothing else");
  void* const file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!file) throw Unloadable(dlerror());
  const auto entry = reinterpret_cast<plugrad_communicator_entry>(dlsym(file, kEntry));
  const plugrad_communicator* const table = entry(make_host());
  if (!table) throw Unloadable(path + ": the entry returned null; it must return the table");
  if (table->struct_size < sizeof *table || table->layout != PLUGRAD_COMMUNICATOR_LAYOUT)
    throw Unloadable(path + ": it was built with a different communicator.h; rebuild it with this SDK");
  if (!table->launched || !table->open || !table->split || !table->start || !table->failure || !table->abort ||
      !table->close || !(table->test || table->wait))
    throw Unloadable(path + ": launched, open, split, start, failure, abort or close is null, or both test and wait are");
  return *table;
}

Rank::Rank(const plugrad_communicator& table, OptionList options, std::string folder, int rank, int size)
    : table_(table), options_(std::move(options)), folder_(std::move(folder)), rank_(rank), size_(size) {
  store_ = {sizeof store_, 0, &folder_, set, get};
}

plugrad_group* Rank::open(uint32_t generation) {
  std::vector<plugrad_option> pairs;
  for (const auto& [key, value] : options_) pairs.push_back({sizeof(plugrad_option), 0, key.c_str(), value.c_str()});
  plugrad_group_options wanted{};
  wanted.struct_size = sizeof wanted;
  wanted.generation = generation;
  wanted.rank = rank_;
  wanted.size = size_;
  wanted.local_size = size_;
  wanted.store = folder_.empty() ? nullptr : &store_;
  wanted.timeout = static_cast<uint64_t>(kCommTimeout.count());
  wanted.options = {sizeof(plugrad_options), static_cast<uint32_t>(pairs.size()), sizeof(plugrad_option), pairs.data()};
  plugrad_group* group = nullptr;
  int32_t rank = -1, size = -1;
  const Outcome opened = attempt("open", [&] { return table_.open(make_host(), &wanted, &group, &rank, &size); });
  if (!opened.ok() || !group) throw Breach("open: " + opened.text());
  if ((rank_ >= 0 && (rank != rank_ || size != size_)) || rank < 0 || rank >= size)
    throw Breach("open stored rank " + std::to_string(rank) + " of " + std::to_string(size));
  rank_ = rank;
  size_ = size;
  return group;
}

plugrad_collective Rank::collective(uint32_t kind, uint8_t dtype, const void* from, void* to, uint64_t count) const {
  plugrad_collective c{};
  c.struct_size = sizeof c;
  c.kind = kind;
  c.number = ++number_;
  c.fingerprint = (c.number * 0x9e3779b97f4a7c15u) ^ (uint64_t{kind} << 40) ^ (uint64_t{dtype} << 32) ^ count;
  c.from = from;
  c.to = to;
  c.count = count;
  c.dtype = dtype;
  c.item = static_cast<uint32_t>(element_size(dtype));
  c.peer = -1;
  return c;
}

Rank::Started Rank::start(plugrad_group* group, const plugrad_collective& collective) {
  Started started;
  started.outcome = attempt("start", [&] { return table_.start(group, &collective, &started.work); });
  if (started.outcome.ok() && !started.work) throw Breach("start returned OK and stored no work");
  return started;
}

Outcome Rank::finish(plugrad_work* work, milliseconds most) {
  if (!table_.test) return attempt("wait", [&] { return table_.wait(work, static_cast<uint64_t>(most.count())); });
  const auto end = Clock::now() + most;
  for (uint32_t ended = 0;;) {
    const Outcome tested = attempt("test", [&] { return table_.test(work, &ended); });
    if (!tested.ok() || ended) return tested;
    if (Clock::now() > end) return {PLUGRAD_TIMED_OUT, "no end within the time-out"};
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

Outcome Rank::run(plugrad_group* group, const plugrad_collective& collective) {
  const Started started = start(group, collective);
  return started.outcome.ok() ? finish(started.work, kCommTimeout) : started.outcome;
}

void Rank::expect(bool right, const std::string& failure) {
  ++cases;
  if (!right) failures.push_back(failure);
}

}  // namespace plugrad::conformance
