#include <core/runtime/observe/observed.hpp>

#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/runtime/fork.hpp>
#include <core/runtime/observe/step_part.hpp>
#include <core/runtime/observe/tracking.hpp>

#include <mutex>
#include <utility>
#include <vector>

namespace plugrad {
namespace {
ForkMutex captures_mutex;

std::vector<Observer*>& observers() {  // captures_mutex held
  static std::vector<Observer*>& all = *new std::vector<Observer*>;
  return all;
}

void count_active(int by) {
  observe::active += static_cast<uint32_t>(by);
  observe::update();
}
}  // namespace

Observer::Observer() {
  count_active(1);
  local().observer = this;
}

void Observer::listen() { observers().push_back(this); }

void Observer::leave() noexcept { std::erase(observers(), this); }

Observer::~Observer() {
  if (local().observer == this) local().observer = nullptr;
  count_active(-1);
}

std::mutex& observed_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}

namespace observe {

ForkMutex& mutex() { return captures_mutex; }

void update() {
  const std::lock_guard lock(observed_mutex());
  const bool any = profiling::is_on() || tracking::is_on() || shadow::is_on() || is_on() || process_check::is_on();
  if (any || stand_ins::is_on()) modes |= kObserved;
  else modes &= ~kObserved;
}

void released(Storage& storage) noexcept {
  if (storage.captured) {
    const std::lock_guard lock(captures_mutex);
    for (Observer* each : observers()) each->released(storage, local().observer == each);
  }
  if (storage.tracked) tracking::forget(storage);
}

void ran_elsewhere(Storage* const* storages, int count) {
  const std::lock_guard lock(captures_mutex);
  for (Observer* each : observers())
    for (int i = 0; i < count; ++i)
      if (storages[i]) each->used_elsewhere(*storages[i]);
}

void throw_unrepeatable(const char* what, const char* instead) {
  const std::string why = std::string("the function of a compiled step ") + what;
  fail(why.c_str());
  throw Error(Code::invalid, "[compile] " + why + ", which a replay could not follow: " + instead);
}

void run_part(Part part) {
  if (Observer* const observer = local().observer) return observer->run_part(std::move(part));
  part.advance();
  part.repeat();
}

Op::Op(DeviceState& device, const OpCall& call, By by) : call_(call), timed_(device, call) {
  if (by == By::host) {
    timed_.set_how(How::host);
    return;
  }
  if (shadow::is_on()) second_.emplace(device, call);
  if (process_check::is_on()) checked_.emplace(device, call.opcode);
}

bool Op::end(std::optional<How> how, StreamState* stream) {
  checked_.reset();
  if (!how) {
    timed_.drop();
    local().declined = call_.opcode;
    return false;
  }
  if (second_) second_->compare();
  timed_.set_how(*how);
  timed_.complete(stream);
  if (tracking::is_on()) tracking::note(call_);
  return true;
}

void copying_to(Storage& to) {
  if (tracking::is_on()) tracking::note_copy(to);
}

void decomposed(DeviceState& device) {
  if (profiling::is_on()) profiling::note_decomposition(device, local().declined);
}

bool needs_each_op() { return shadow::is_on() || process_check::is_on() || tracking::is_on(); }

void start() {
  shadow::start();
  process_check::start();
}

}  // namespace observe

}  // namespace plugrad
