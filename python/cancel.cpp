// Cancellations of calls.
#include <plugrad/runtime/cancel.hpp>
#include <python/binding.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace plugrad::python {
namespace {

// Python holds its lock in all functions, so the list needs none.
class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  void cancel() { source_.request_stop(); }
  bool is_cancelled() const { return source_.stop_requested(); }
  void enter() { scopes_.emplace_back(std::this_thread::get_id(), std::make_unique<CancelScope>(source_.get_token())); }
  // Ends the innermost scope of this thread.
  void exit() {
    const auto is_own = [](const auto& each) { return each.first == std::this_thread::get_id(); };
    const auto found = std::find_if(scopes_.rbegin(), scopes_.rend(), is_own);
    if (found == scopes_.rend()) throw Error(Code::invalid, "[cancel] another thread entered the block: leave it there");
    scopes_.erase(std::prev(found.base()));
  }

 private:
  std::stop_source source_;
  std::vector<std::pair<std::thread::id, std::unique_ptr<CancelScope>>> scopes_;
};
}  // namespace

void bind_cancellation(nb::module_& m) {
  nb::class_<Cancellation>(
      m, "Cancellation",
      "Cancels calls from another thread. Inside of `with cancellation:` the thread's calls of ONNX models, saved models "
      "and "
      "compiled functions raise concurrent.futures.CancelledError soon after cancel(): before their next op, or while they "
      "wait for a lane. These are never interrupted: an op, a compiled function where it does not replay, a step in which "
      "other processes take part, and what a GPU has accepted. What a call has written stays written: a training step may "
      "have updated some of its parameters. Several threads may enter one cancellation; the thread that enters also leaves.")
      .def(nb::init<>(), "A cancellation that nothing has cancelled yet.")
      .def("cancel", &Cancellation::cancel, "Cancels the calls inside, now and later. Any thread may call it.")
      .def_prop_ro("cancelled", &Cancellation::is_cancelled, "Whether cancel() was called.")
      .def(
          "__enter__",
          [](const nb::handle& self) {
            nb::cast<Cancellation&>(self).enter();
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Cancellation"))
      .def("__exit__", [](Cancellation& self, const nb::args&) { self.exit(); }, "Leaves the block.");
}

}  // namespace plugrad::python
