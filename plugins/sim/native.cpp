// The extension of native.h: waits between streams by their handles, and callbacks when work has ended.
#include <plugins/sim/device.hpp>

namespace plugrad::sim {
namespace {
SimStream& own(Stream& stream) { return static_cast<SimStream&>(stream); }

// The caller holds World::mutex.
SimStream& known(void* native) {
  if (std::ranges::count(world().streams, native)) return *static_cast<SimStream*>(native);
  throw BackendError(PLUGRAD_INVALID, "the native stream is not a stream of this plugin: pass a handle from native.h");
}
}  // namespace

void* Sim::native_handle(Stream& stream) { return &own(stream); }

void Sim::wait_native(Stream& stream, uint64_t number, void* native) {
  SimStream& s = own(stream);
  s.wait_for_room();
  const std::lock_guard lock(world().mutex);
  s.demand_sound();
  s.demand_number(number);
  if (SimStream& other = known(native); &other != &s) {
    world().clocks.followed(s.id(), number, {other.id(), other.accepted()});
    s.follow(other);
  }
  s.mark(number);
}

void Sim::signal_native(Stream& stream, uint64_t number, void* native) {
  SimStream& s = own(stream);
  s.wait_for_room();
  const std::lock_guard lock(world().mutex);
  s.demand_sound();
  s.demand_number(number);
  SimStream& other = known(native);
  s.mark(number);
  if (&other == &s) return;
  world().clocks.followed(other.id(), other.accepted() + 1, {s.id(), number});
  other.follow(s);
}

void Sim::notify(Stream& stream, uint64_t number, Notice notice) {
  SimStream& s = own(stream);
  if (number > s.accepted())
    throw BackendError(PLUGRAD_INVALID, "notify of number " + std::to_string(number) + " of a stream whose last number is " +
                                            std::to_string(s.accepted()));
  s.notify(number, notice);
}

// --- Functions of the stream.

void SimStream::mark(uint64_t number) {
  slot().kind = Job::kMark;
  submit(number);
}

// `other` may have barriers for jobs after its last job, so they are copied as well.
void SimStream::follow(SimStream& other) {
  std::deque<Barrier> after;
  {
    const std::lock_guard lock(other.native_mutex_);
    after = other.barriers_;
  }
  after.push_back({0, &other, other.queued_.value()});
  const std::lock_guard lock(native_mutex_);
  for (Barrier& barrier : after) {
    barrier.at = queued_.value();
    barriers_.push_back(barrier);
  }
}

void SimStream::pass_barriers(uint64_t next) {
  std::unique_lock lock(native_mutex_);
  while (!barriers_.empty() && barriers_.front().at <= next) {
    const Barrier barrier = barriers_.front();
    lock.unlock();
    barrier.other->retired_.wait_for(barrier.jobs);
    lock.lock();
    barriers_.pop_front();
  }
}

void SimStream::notify(uint64_t number, Notice notice) {
  {
    const std::lock_guard lock(native_mutex_);
    pending_.push_back({number, notice});
  }
  tell();
}

void SimStream::tell() {
  const bool lost = state() == PLUGRAD_DEVICE_LOST;
  const uint64_t reached = lost ? accepted() : finished();
  std::vector<Pending> due;
  {
    const std::lock_guard lock(native_mutex_);
    const auto first =
        std::stable_partition(pending_.begin(), pending_.end(), [&](const Pending& p) { return p.number > reached; });
    due.assign(first, pending_.end());
    pending_.erase(first, pending_.end());
  }
  if (due.empty()) return;
  {
    const std::lock_guard lock(world().mutex);
    world().clocks.host_learned(id_, reached, !lost);
  }
  for (const Pending& p : due) p.notice();
}

}  // namespace plugrad::sim
