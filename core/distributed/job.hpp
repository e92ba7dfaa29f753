// This process as one rank of a job: the engine, the store and the watch that all groups of the job share.
#pragma once
#include <core/distributed/engine.hpp>
#include <core/distributed/environment.hpp>
#include <core/distributed/store.hpp>
#include <core/distributed/watch.hpp>
#include <plugrad/runtime/error.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace plugrad::distributed {

class Job {
 public:
  // Joins the job, with all other ranks. Throws Error.
  explicit Job(const ProcessGroupOptions& options);
  ~Job();
  Job(const Job&) = delete;

  const Launch& launch() const { return launch_; }
  Engine& engine() const { return engine_; }
  plugrad_group* world() const { return world_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Groups whose connections end when the job breaks. [communication thread]
  void add(plugrad_group* group);
  // Leaves the job in an orderly way. Waits for the other ranks for 2 s, and as long as they need this rank's store. Throws
  // Error if the job broke and no call has reported the failure yet.
  void leave();
  // Tells the other ranks why this rank fails.
  void abort(const std::string& why);

  void note(const Call& call);
  bool broken() const { return broken_; }
  // Throws Error if this rank has left the job, or the job broke. what: the call. [communication thread]
  void require_whole(const std::string& what) const;
  // Breaks the job, because the engine reported a failure of a call in a group of this size. Returns the call's error.
  // [communication thread]
  Error fail(const Call& call, int size, const Ending& ending);
  // The program gets the error of a job that broke.
  void tell() { known_ = true; }
  // The error of a job that broke. what: the call; before and after: words around the cause.
  Error error(const std::string& what,
              const std::string& before = "the group is broken: ", const std::string& after = "") const;

 private:
  void watch(int rank, int size);
  void open(const OptionList& options);
  [[noreturn]] void throw_unopened(const Ending& ending) const;
  void require_size(int wanted_rank, int wanted);
  void share_store();
  bool all_have_store();
  void close_groups();
  void break_by(const std::string& cause, Code code);
  bool ask(std::vector<uint8_t>& silent) const;

  Launch launch_;
  Engine& engine_;
  std::unique_ptr<Store> store_;
  plugrad_store table_{};
  plugrad_group* world_ = nullptr;
  int rank_ = -1, size_ = -1;
  std::atomic<bool> broken_{false};
  std::atomic<bool> known_{false};  // to the program, which got an error or caused it
  bool left_ = false;               // of the communication thread
  std::mutex groups_mutex_;
  std::vector<plugrad_group*> groups_;
  mutable std::mutex mutex_;  // of the members below
  std::string cause_;
  Code code_ = Code::peer_lost;
  std::unique_ptr<Watch> watch_;  // last: its thread uses the others
};

}  // namespace plugrad::distributed
