// Python objects that the core holds. The core may drop the last handle in a thread without the GIL.
#pragma once
#include <python/binding.hpp>

#include <memory>

namespace plugrad::python {

// Calls release(object) under the GIL: now if this thread holds the GIL, else later as a pending call of the interpreter. A
// thread without the GIL must not wait for the GIL, because the thread may hold a lock of the core, and waiting could
// deadlock. Does nothing once the interpreter has ended.
void release_under_gil(void* object, void (*release)(void*));
// Makes the delayed calls of release_under_gil. The caller holds the GIL.
void release_waiting();

// A reference that may be copied and dropped without the GIL.
class Held {
 public:
  explicit Held(nb::object object)
      : object_(object.release().ptr(), [](PyObject* last) {
          release_under_gil(last, [](void* each) { Py_DECREF(static_cast<PyObject*>(each)); });
        }) {}
  nb::handle get() const { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

}  // namespace plugrad::python
