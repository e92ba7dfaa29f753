// A communicator and the one thread that calls it.
#pragma once
#include <plugrad/sdk/communicator.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace plugrad::distributed {

// How a call of a communicator ended; reason: the communicator's words.
struct Ending {
  plugrad_status status = PLUGRAD_OK;
  std::string reason = {};
};

// Keeps an object for ever: memory of a work that was given up still belongs to the engine.
template <class T> void leave_to_engine(T object) { (void)new T(std::move(object)); }

// The works of all groups of a communicator in this process. One for each communicator, until the process ends.
class Engine {
 public:
  using Clock = std::chrono::steady_clock;
  // Returns the engine of a communicator, by name or path.
  static Engine& of(const std::string& communicator);
  const plugrad_communicator& table() const { return table_; }

  // Runs a task on the communication thread, after the tasks before it. The task must not throw. [any]
  void post(std::function<void()> task);
  // The same, and waits for its end. [any but the communication thread]
  void call(const std::function<void()>& task);
  // Ends the engine for the rest of the process. Waits at most this long, and returns whether the engine ended. [any but the
  // communication thread]
  bool finish(std::chrono::milliseconds most);

  // --- On the communication thread.
  // Calls open or split.
  Ending make_group(const std::function<plugrad_status(plugrad_group** group, int32_t* rank, int32_t* size)>& make,
                    plugrad_group*& group, int& rank, int& size);
  // Runs a collective to its end, while others in flight go on. The time-out breaks the group; ends_early is asked now and
  // then whether the group is broken.
  Ending run(plugrad_group* group, const plugrad_collective& collective, std::chrono::milliseconds timeout,
             const std::function<bool()>& ends_early);
  // Starts a send or a receive, and calls ended when it ends: for engines without test(), in a call of complete().
  struct InFlight {
    plugrad_group* group;
    plugrad_work* work;
    Clock::time_point deadline;
    std::function<bool()> ends_early;
    std::function<void(const Ending&)> ended;
    const void* owner;
    bool is_on_device = false;  // no thread waits for it, so leaving does
  };
  Ending start(InFlight flight, const plugrad_collective& collective);
  // Waits for the send or receive of an owner, unless the engine polls.
  void complete(const void* owner);
  // Waits for sends and receives of these owners until done() holds, with polls too.
  void complete(std::span<const void* const> owners, const std::function<bool()>& done);
  // Waits for the ends of collectives on devices, at most until their deadlines.
  void complete_on_devices();
  // Gives up what is in flight in a broken group.
  void drop(plugrad_group* group, const Ending& why);

 private:
  explicit Engine(const plugrad_communicator& table);
  void serve();
  void progress();
  Ending poll(plugrad_work* work, Clock::time_point deadline, const std::function<bool()>& ends_early);

  const plugrad_communicator& table_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::list<InFlight> in_flight_;
};

}  // namespace plugrad::distributed
