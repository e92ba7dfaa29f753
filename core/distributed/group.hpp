// A group of processes, and the collectives that it has in progress.
#pragma once
#include <core/distributed/job.hpp>
#include <plugrad/distributed/collectives.hpp>
#include <plugrad/tensor/dtype.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace plugrad::distributed {

// A collective of the program. The memory lives until the work ends.
struct Request {
  uint32_t kind = 0;
  uint8_t dtype = PLUGRAD_U8;
  const void* from = nullptr;
  void* to = nullptr;
  uint64_t count = 0;                 // as in plugrad_collective
  std::vector<uint64_t> counts = {};  // uneven ALL_TO_ALL
  uint32_t how = 0;                   // PLUGRAD_REDUCE_SUM, ..
  int peer = -1;                      // in this group
  bool average = false;               // divides a sum by the number of ranks
  bool ordered = false;               // sums as a binary tree over the ranks
  void* stream = nullptr;             // of device memory, as in plugrad_collective
  int device = -1;
  // "all_reduce of 1024 f32"
  std::string text() const;
  bool is_message() const { return kind == PLUGRAD_COLL_SEND || kind == PLUGRAD_COLL_RECV; }
};

struct WorkState {
  // Marks the work as ended, by an error or without.
  void end(std::exception_ptr why);
  // Marks the work as submitted: the device's stream waits for its end.
  void order();

  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  bool in_order = false;  // of device memory: the engine has submitted the collective to its stream
  std::exception_ptr error;
  std::shared_ptr<Job> job;  // set when the work starts
  // Set before the work starts: done by the thread that waits, once, after the end without an error, or once in order.
  std::function<void()> then;
  // Of a device: lives until the engine has done, or until the device's own stream waits for the engine.
  std::vector<Tensor> memory;
  // Set before the work starts, for engines that must be told to wait.
  std::function<void()> complete;
  // Replaces wait(), if a recorded step started the collective.
  std::function<void()> in_step;
};

class GroupState : public std::enable_shared_from_this<GroupState> {
 public:
  // The group of all ranks.
  explicit GroupState(std::shared_ptr<Job> job);

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::vector<int>& ranks() const { return ranks_; }
  Job& job() const { return *job_; }
  // The rank in this group of a rank of the job. Throws Error (invalid) if it is no member.
  int member(int rank, const char* what) const;

  // Makes a group of these ranks of the job. All ranks of this group call it; it returns null on ranks outside of the list.
  std::shared_ptr<GroupState> split(const std::vector<int>& ranks);
  // Throws Error if the job broke. what: the call.
  void require_whole(const std::string& what) const;
  // Starts a collective. work: with then, if it has one.
  void submit(Request request, const std::shared_ptr<WorkState>& work);

 private:
  GroupState(std::shared_ptr<Job> job, plugrad_group* handle, int rank, std::vector<int> ranks, std::string name);
  // --- On the communication thread.
  void execute(const Request& request, const std::shared_ptr<WorkState>& work);
  void execute_alone(const Request& request);
  void exchange(const Request& request, const std::shared_ptr<WorkState>& work);
  void fly(const plugrad_collective& collective, Call call, const std::shared_ptr<WorkState>& work);
  void start_on_device(const Request& request, const std::shared_ptr<WorkState>& work);
  Ending reduce(const plugrad_collective& collective, const Request& request);
  plugrad_collective collective_of(const Request& request);
  Call call_of(const Request& request, bool active) const;
  void check_same(const Request& request);

  std::shared_ptr<Job> job_;
  plugrad_group* handle_ = nullptr;
  int rank_ = 0, size_ = 1;
  std::vector<int> ranks_;
  std::string name_;
  int64_t process_;
  // Of the communication thread:
  uint64_t number_ = 0, splits_ = 0;
  std::vector<uint64_t> sent_, received_;  // by rank
};

}  // namespace plugrad::distributed
