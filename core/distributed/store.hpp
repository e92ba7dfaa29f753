// The store by which ranks find each other and tell each other how they are: a few small values by name.
#pragma once
#include <plugrad/sdk/communicator.h>
#include <core/distributed/environment.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace plugrad::distributed {

// The key of the first cause of the job's failure; a launcher may set it in place of a rank.
inline constexpr const char* kFailed = "failed";

// Safe from any thread. A function throws Error (peer_lost) if the store cannot be reached.
class Store {
 public:
  virtual ~Store() = default;
  // Sets a value; a key's first value stays.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Sets a value in place of an earlier one.
  virtual void replace(const std::string& key, const std::string& value) = 0;
  // The value now, if the key has one.
  virtual std::optional<std::string> get(const std::string& key) = 0;
  // Where this process listens for the other ranks; 0: it does not.
  virtual int port() const { return 0; }
  // After a failure, in the process with the store: waits until all ranks but this process have read the cause and ended, at
  // most this long.
  virtual void wait_for_others(std::chrono::milliseconds) {}
  // Waits for a value, at most this long, and not after the job has failed.
  std::optional<std::string> wait(const std::string& key, std::chrono::milliseconds most);
};

// Opens the store of a launch, in which all ranks of the launch and no others meet. Throws Error: invalid for an address of
// another form, peer_lost if the ranks do not meet in time. Port 0: rank 0 listens on any free port.
std::unique_ptr<Store> open_store(const Launch& launch);
std::unique_ptr<Store> open_file_store(const std::string& directory, const Launch& launch);
std::unique_ptr<Store> open_tcp_store(const std::string& host, int port, const Launch& launch);
// Rank 0 listens on any free port; the address is "HOST:PORT" for the others.
std::unique_ptr<Store> listen_anywhere(const Launch& launch, std::string& address);
std::unique_ptr<Store> open_store_at(const std::string& address, const Launch& launch);

// The store as a communicator sees it; it lives no longer than the store.
plugrad_store store_for_engines(Store& store);

}  // namespace plugrad::distributed
