#include <plugrad/runtime/event.hpp>

#include <core/runtime/device_state.hpp>
#include <core/runtime/observe/observer.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad {

void Event::record(Device device) {
  if (!device.defined()) throw Error(Code::invalid, "[event] the device is undefined: name one, as in Device(\"cpu\")");
  observe::unrepeatable("records an event", "record it outside");
  device_ = &device.state();
  if (!device_->compute) return;  // its work is done on return
  computed_ = device_->compute->next;
  copied_ = device_->copies->next;
}

bool Event::is_done() const {
  if (!device_ || !device_->compute) return true;
  return streams::poll(*device_->compute) >= computed_ && streams::poll(*device_->copies) >= copied_;
}

void Event::wait() const {
  if (!device_ || !device_->compute) return;
  if (computed_) streams::verify(*device_->compute, computed_);
  if (copied_) streams::verify(*device_->copies, copied_);
}

}  // namespace plugrad
