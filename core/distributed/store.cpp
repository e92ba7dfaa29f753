#include <core/distributed/store.hpp>

#include <core/distributed/pmix.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <plugrad/runtime/error.hpp>

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace plugrad::distributed {
using std::chrono::milliseconds;
using std::chrono::steady_clock;
namespace {

Store& store_of(const plugrad_store* store) { return *static_cast<Store*>(store->context); }

plugrad_status set(const plugrad_store* store, const char* key, const void* bytes, uint64_t size) {
  try {
    store_of(store).set(key, {static_cast<const char*>(bytes), size});
    return PLUGRAD_OK;
  } catch (...) {
    report_exception();
    return PLUGRAD_PEER_LOST;
  }
}

plugrad_status get(const plugrad_store* store, const char* key, void* bytes, uint64_t capacity, uint64_t* size,
                   uint64_t most) {
  try {
    const auto value = store_of(store).wait(key, milliseconds(most));
    if (!value) return PLUGRAD_TIMED_OUT;
    *size = value->size();
    std::memcpy(bytes, value->data(), std::min<uint64_t>(capacity, value->size()));
    return PLUGRAD_OK;
  } catch (...) {
    report_exception();
    return PLUGRAD_PEER_LOST;
  }
}

[[noreturn]] void refuse_address(const std::string& address) {
  throw Error(Code::invalid, "[init_process_group] the store '" + address +
                                 "' has another form: file:///DIRECTORY, tcp://HOST:PORT or pmix: expected");
}
}  // namespace

std::optional<std::string> Store::wait(const std::string& key, milliseconds most) {
  const auto end = steady_clock::now() + most;
  milliseconds nap{1};
  for (uint32_t round = 1;; ++round) {
    if (auto value = get(key)) return value;
    const bool looks = round % 8 == 0 && key != kFailed;
    if (steady_clock::now() >= end || (looks && get(kFailed))) return {};
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, milliseconds(10));
  }
}

std::unique_ptr<Store> listen_anywhere(const Launch& launch, std::string& address) {
  std::unique_ptr<Store> store = open_tcp_store("", 0, launch);
  char name[200] = "";
  gethostname(name, sizeof name - 1);
  address = std::string(name) + ":" + std::to_string(store->port());
  return store;
}

std::unique_ptr<Store> open_store_at(const std::string& address, const Launch& launch) {
  const size_t colon = address.rfind(':');
  return open_tcp_store(address.substr(0, colon), std::atoi(address.c_str() + colon + 1), launch);
}

namespace {
std::unique_ptr<Store> open_pmix_store(const Launch& launch) {
  std::unique_ptr<Store> first;
  const auto tell = [&] {
    std::string address;
    first = listen_anywhere(launch, address);
    return address;
  };
  const std::string address = told_by_rank_0(launch.rank, tell, launch.timeout);
  return first ? std::move(first) : open_store_at(address, launch);
}
}  // namespace

std::unique_ptr<Store> open_store(const Launch& launch) {
  const std::string& address = launch.store;
  if (address == kPmixStore) return open_pmix_store(launch);
  constexpr std::string_view kFile = "file://", kTcp = "tcp://";
  if (address.starts_with(kFile) && address.size() > kFile.size() + 1 && address[kFile.size()] == '/')
    return open_file_store(address.substr(kFile.size()), launch);
  const size_t colon = address.rfind(':');
  if (!address.starts_with(kTcp) || colon <= kTcp.size()) refuse_address(address);
  int port = 0;
  const char *begin = address.data() + colon + 1, *end = address.data() + address.size();
  const auto [stop, error] = std::from_chars(begin, end, port);
  if (error != std::errc() || stop != end || port < 1 || port > 65535) refuse_address(address);
  return open_tcp_store(address.substr(kTcp.size(), colon - kTcp.size()), port, launch);
}

plugrad_store store_for_engines(Store& store) { return {sizeof(plugrad_store), 0, &store, set, get}; }

}  // namespace plugrad::distributed
