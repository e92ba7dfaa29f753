#include <python/held.hpp>

#include <mutex>

namespace plugrad::python {
namespace {

class Waiting {
 public:
  void add(void* object, void (*release)(void*)) {
    {
      const std::lock_guard lock(mutex_);
      all_.emplace_back(object, release);
    }
    // If the interpreter's queue is full, this call does nothing, and the next caller of release_waiting makes the calls.
    Py_AddPendingCall(
        [](void* self) {
          static_cast<Waiting*>(self)->release();
          return 0;
        },
        this);
  }
  void release() {
    std::vector<std::pair<void*, void (*)(void*)>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(all_);
    }
    for (const auto& [object, release] : all) release(object);
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<void*, void (*)(void*)>> all_;
};
Waiting& waiting() {
  static Waiting& all = *new Waiting;
  return all;
}
}  // namespace

void release_under_gil(void* object, void (*release)(void*)) {
  if (holds_gil()) release(object);
  else if (Py_IsInitialized()) waiting().add(object, release);
}

void release_waiting() { waiting().release(); }

}  // namespace plugrad::python
