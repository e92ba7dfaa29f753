// The core's locks over a fork: whoever forks holds them, so that the child finds them free and what they guard whole.
// Registry::hold takes the registry's own first, then ForkMutexes, then the allocators', then those below.
#pragma once
#include <mutex>

namespace plugrad {

// A mutex of a room above, held over forks. For static objects, which are made before there are threads.
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

std::mutex& census_mutex();  // the threads that live
std::mutex& depot_mutex();   // free objects that no thread holds; one for all depots
std::mutex& log_mutex();     // the log's sink

}  // namespace plugrad
