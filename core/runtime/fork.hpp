// The core's locks across a fork: the forking thread holds them, so the child finds them free and their data consistent.
// Registry::hold locks in this order: the registry's mutexes, each ForkMutex, the allocators' mutexes, the mutexes below.
#pragma once
#include <mutex>

namespace plugrad {

// A mutex of a higher layer, held across forks. For static objects only: they are constructed before threads start.
class ForkMutex : public std::mutex {
 public:
  ForkMutex() : next_(first_) { first_ = this; }
  ForkMutex(const ForkMutex&) = delete;
  template <class F> static void for_each(const F& f) {
    for (ForkMutex* each = first_; each; each = each->next_) f(*each);
  }

 private:
  inline static constinit ForkMutex* first_ = nullptr;
  ForkMutex* next_;
};

std::mutex& census_mutex();    // the list of live threads
std::mutex& depot_mutex();     // free objects outside of threads; a single mutex for all depots
std::mutex& log_mutex();       // the log's sink
std::mutex& recorder_mutex();  // the session of the recording profiler
std::mutex& observed_mutex();  // the bit kObserved of modes
std::mutex& tracking_mutex();  // origins of memory

}  // namespace plugrad
