// The ranks of a job tell each other by the store: their life signs, their collectives, their leaving, the cause of failure.
#pragma once
#include <core/distributed/store.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace plugrad::distributed {

// The name of the group of all ranks; other groups' names begin with it.
inline constexpr const char* kAll = "all";

// The collective that a rank is in, or was in last.
struct Call {
  std::string group = kAll;  // its name; the same for all ranks
  uint64_t number = 0;       // in the group; 0: none so far
  std::string what;          // "all_reduce of 1024 f32"
  bool active = false;
  friend bool operator==(const Call&, const Call&) = default;
};

// The state of one rank as it writes it to the store, each half second.
struct Beat {
  std::string host, space;  // of its process numbers: of two containers on one host, each has its own
  int64_t process = 0;
  uint64_t started = 0;  // the process's start, by the clock of the host
  uint64_t count = 0;    // of its beats
  Call call;
  std::string text() const;
  static std::optional<Beat> parse(const std::string& text);
};

// Asks the ranks of the broken group, by messages of the engine, and marks the silent ones. Returns whether it could ask.
using Ask = std::function<bool(std::vector<uint8_t>& silent)>;

// One thread that writes this rank's beats, and looks for failed ranks.
class Watch {
 public:
  // failed is called at most once, on the watch's thread, with the cause of the job's failure.
  Watch(Store& store, int rank, int size, std::function<void(const std::string& cause)> failed);
  ~Watch();  // ends the beats
  Watch(const Watch&) = delete;

  // Notes what this rank does. [communication thread]
  void note(const Call& call);
  // Says that this rank leaves in an orderly way, after its last collective.
  void leave();
  // Waits until all other ranks left, at most this long. Returns why the job failed meanwhile, or "".
  std::string wait_for_leaving(std::chrono::milliseconds most);
  bool all_left();
  // Makes this text the cause of the job's failure, unless there is one. Returns the cause.
  std::string accuse(const std::string& cause);
  // Why the job failed, or which ranks of this host have ended; "" if neither is known within 0.4 s.
  std::string find_ended();
  // Finds the cause of a failure that the engine reported, and makes it the job's. Takes up to 3 s where no rank is known to
  // have ended.
  std::string find_cause(bool timed_out, const Ask& ask);

 private:
  void watch();
  void beat();
  void lost_store(const std::string& why);
  std::optional<Beat> beat_of(int rank);
  bool has_left(int rank);
  std::string name_of(int rank, const Beat& beat) const;
  std::string known_cause();
  std::string dead_ranks();
  std::string ranks_that_left();
  std::string ranks_that_differ();
  std::string silent_ranks(const Ask& ask);
  std::string vote(const std::vector<uint8_t>& silent);

  Store& store_;
  const int rank_, size_;
  const std::function<void(const std::string&)> failed_;
  std::mutex mutex_;  // of the members up to history_
  std::condition_variable wake_;
  bool stops_ = false, leaves_ = false;
  Beat mine_;
  std::deque<Call> history_;                     // the last collectives
  std::mutex looks_;                             // of neighbours_
  std::vector<std::optional<Beat>> neighbours_;  // a beat of each rank, to know its process
  std::thread thread_;
};

}  // namespace plugrad::distributed
