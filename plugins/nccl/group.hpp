// Groups of ranks, and what they have in progress.
#pragma once
#include <plugins/nccl/connection.hpp>
#include <plugins/nccl/staging.hpp>

#include <plugrad/sdk/communicator.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

// A collective that NCCL has begun, or a message.
struct plugrad_work {
  plugrad_group* group = nullptr;
  nccl::Connection* connection = nullptr;
  nccl::Event* end = nullptr;  // on the stream, behind the collective
  nccl::Block block;           // of elements in host memory
  size_t place = 0;            // of the results in the block
  void* to = nullptr;          // host memory for the results
  size_t bytes = 0;            // of the results
  // Of a message. Its kernel waits on the device until the other rank's kernel comes, and may hinder other work there. So
  // both ranks say first that they are here.
  plugrad_collective message{};
  enum class Stage { called, told, met, begun } stage = Stage::called;
  std::chrono::steady_clock::time_point next_look{};  // for the other rank
  std::chrono::microseconds nap{100};
};

// [one-thread], but for abort and reason.
struct plugrad_group {
  plugrad_group(const plugrad_store& store, std::string prefix, int rank, int size, uint64_t timeout);
  ~plugrad_group();

  // Waits until all ranks of the group are here, with this version of NCCL. Throws nccl::Failure.
  void meet() const;
  std::unique_ptr<plugrad_group> split(int32_t color, uint64_t number);
  // Starts a collective; null: NCCL lacks it.
  plugrad_work* start(const plugrad_collective& c);
  // Whether the work ended; it no longer exists then.
  bool test(plugrad_work* work);
  void abort();
  // Breaks the group: the first reason counts.
  void break_by(const std::string& reason);
  std::string reason();
  bool is_broken() const { return gate_.broken; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  plugrad_work& made();
  void forget(plugrad_work* work);
  std::string told(const std::string& key) const;
  void require_whole();
  void wait_until(const std::function<bool()>& ready, const std::string& what) const;
  void settle(nccl::Connection& connection);
  nccl::Connection& channel(const plugrad_collective& message);
  void run(plugrad_work& work, const plugrad_collective& c);
  bool has_met(plugrad_work& work);
  void begin_message(plugrad_work& work);
  void end_message(plugrad_work& work);
  void advance_messages();
  static void advance_all_messages();
  std::vector<nccl::Comm*> release();

  const plugrad_store& store_;
  const std::string prefix_;  // of the keys in the store
  const int rank_, size_;
  const uint64_t timeout_;
  nccl::Gate gate_;
  std::mutex why_mutex_;
  std::string why_;
  nccl::Staging staging_;
  std::unique_ptr<nccl::Connection> all_;  // from the first collective on
  // From the first message to, or of, a rank on. Each direction has a connection, so that two ranks may send to each other
  // before they receive.
  std::map<int, std::unique_ptr<nccl::Connection>> to_, of_;
  std::list<std::unique_ptr<plugrad_work>> works_;
  std::list<plugrad_work*> messages_;  // not begun, or not done
};
