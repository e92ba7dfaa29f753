// Copies and streams of a device.
#include <plugins/sim/device.hpp>

#include <cstring>

namespace plugrad::sim {
namespace {
SimStream& own(Stream& stream) { return static_cast<SimStream&>(stream); }
}  // namespace

struct Sim::Side {
  Sim* device = nullptr;  // null: plain host memory
  const Region* region = nullptr;
  uint64_t offset = 0;  // in region
  char* bytes = nullptr;
};

Sim::Side Sim::side(const plugrad_place& place, uint64_t bytes) const {
  char* address = reinterpret_cast<char*>(place.buffer);
  if (place.kind == PLUGRAD_HOST) return {nullptr, nullptr, 0, address + place.offset};
  if (place.kind != PLUGRAD_PINNED && place.kind != PLUGRAD_DEVICE)
    throw BackendError(PLUGRAD_UNSUPPORTED, "a place of kind " + std::to_string(place.kind));
  if (!std::ranges::count(world().devices, place.device))
    throw BackendError(PLUGRAD_INVALID, "a place on a device of another plugin");
  Sim& device = backend_of<Sim>(place.device);
  const bool pinned = place.kind == PLUGRAD_PINNED;
  const Region& region = pinned ? device.pinned_ : device.memory_;
  const auto block = pinned ? region.containing(address) : region.find(address);
  if (!block)
    throw BackendError(PLUGRAD_INVALID, pinned ? "an address that is not pinned" : "a buffer that is not allocated");
  const uint64_t offset = region.offset(address) + place.offset;
  if (offset + bytes > block->offset + block->bytes)
    throw BackendError(PLUGRAD_INVALID, "a copy of " + std::to_string(bytes) + " bytes at " + std::to_string(place.offset) +
                                            " of a buffer of " + std::to_string(block->bytes));
  return {&device, &region, offset, region.bytes(offset)};
}

bool Sim::note_copy(const SimStream& stream, const plugrad_copy& copy, const Side& to, const Side& from) {
  const Epoch by{stream.id(), copy.number};
  bool racing = false;
  if (from.region) racing |= from.device->access(*from.region, by, from.offset, copy.bytes, false);
  if (to.region) racing |= to.device->access(*to.region, by, to.offset, copy.bytes, true);
  return racing;
}

void Sim::copy(Stream* stream, const plugrad_copy& copy) {
  if (!stream) throw BackendError(PLUGRAD_INVALID, "copy without a stream");
  if (!copy.bytes) throw BackendError(PLUGRAD_INVALID, "a copy of no bytes");
  if (copy.to.kind != PLUGRAD_DEVICE && copy.from.kind != PLUGRAD_DEVICE)
    throw BackendError(PLUGRAD_UNSUPPORTED, "a copy between two places in host memory");
  SimStream& s = own(*stream);
  s.wait_for_room();
  std::unique_lock lock(world().mutex);
  s.demand_sound();
  s.demand_number(copy.number);
  const Side to = side(copy.to, copy.bytes), from = side(copy.from, copy.bytes);
  const uint32_t faults = to.region && due(PLUGRAD_SIM_FAIL_COPY) ? 1u << PLUGRAD_SIM_FAIL_COPY : 0;
  const bool racing = note_copy(s, copy, to, from);
  ++counters_.copies;
  if (!from.region) {
    lock.unlock();
    return copy_up(s, copy, to.bytes, racing, faults);
  }
  Job& job = s.slot();
  job.kind = Job::kCopy;
  job.to = to.bytes;
  job.from = from.bytes;
  job.bytes = copy.bytes;
  job.racing = racing;
  job.faults = faults;
  job.source = &from.device->conditions_;
  s.submit(to.region ? copy.number : 0);
  if (to.region) return;
  lock.unlock();
  copy_down(s, copy);
}

// Copies in chunks through the stream's staging memory; the last chunk takes the copy's number.
void Sim::copy_up(SimStream& stream, const plugrad_copy& copy, char* to, bool racing, uint32_t faults) {
  const char* from = reinterpret_cast<const char*>(copy.from.buffer) + copy.from.offset;
  for (uint64_t done = 0; done < copy.bytes;) {
    const uint64_t chunk = std::min(copy.bytes - done, SimStream::kStageBytes);
    stream.wait_for_room();
    char* staged = stream.stage();
    std::memcpy(staged, from + done, chunk);
    Job& job = stream.slot();
    job.kind = Job::kCopy;
    job.to = to + done;
    job.from = staged;
    job.bytes = chunk;
    job.racing = racing;
    done += chunk;
    const bool last = done == copy.bytes;
    job.faults = last ? faults : 0;
    stream.submit(last ? copy.number : 0);
  }
}

// The number is taken only if the copy succeeds, since the host reuses a refused number. The accesses recorded under it
// count as ended either way: nothing of this copy is in flight.
void Sim::copy_down(SimStream& stream, const plugrad_copy& copy) {
  stream.wait_until_idle();
  const plugrad_status status = stream.state();
  if (status == PLUGRAD_OK) stream.finish(copy.number);
  {
    const std::lock_guard lock(world().mutex);
    if (status != PLUGRAD_OK) --counters_.copies;
    world().clocks.host_learned(stream.id(), copy.number);
  }
  stream.demand_sound();
}

// --- Streams.

std::unique_ptr<Stream> Sim::stream_create(uint32_t role) {
  if (conditions_.lost) throw BackendError(PLUGRAD_DEVICE_LOST, "the simulated device is lost");
  uint32_t id = 0;
  {
    const std::lock_guard lock(world().mutex);
    id = world().clocks.add_stream(&conditions_.lost);
  }
  auto stream = std::make_unique<SimStream>(conditions_, id, std::min(role, 31u));
  const std::lock_guard lock(world().mutex);
  world().streams.push_back(stream.get());
  return stream;
}

plugrad_status Sim::completed(Stream& stream, uint64_t& number) noexcept {
  SimStream& s = own(stream);
  number = s.finished();  // before the state: a failure is stored before the failed number
  const plugrad_status status = s.state();
  if (status == PLUGRAD_DEVICE_LOST) number = s.accepted();
  const std::lock_guard lock(world().mutex);
  // If a lost device's stream was waiting for work on another device, this work may still run.
  world().clocks.host_learned(s.id(), number, status != PLUGRAD_DEVICE_LOST);
  return status;
}

// Waits for the next multiple of four, at most the last number, so that tests find hosts ignoring the raised number.
void Sim::wait(Stream& stream, Stream& other, uint64_t& number) {
  SimStream &s = own(stream), &o = own(other);
  s.wait_for_room();
  const std::lock_guard lock(world().mutex);
  s.demand_sound();
  const uint64_t last = o.accepted();
  if (!number || number > last)
    throw BackendError(PLUGRAD_INVALID,
                       "wait for number " + std::to_string(number) + " of a stream that is at " + std::to_string(last));
  number = std::min((number + 3) / 4 * 4, last);
  world().clocks.joined(s.id(), s.accepted() + 1, {o.id(), number});
  if (o.finished() >= number || &s == &o) return;
  Job& job = s.slot();
  job.kind = Job::kWait;
  job.other = &o;
  job.other_number = number;
  s.submit(0);
}

void Sim::sync(Stream& stream, plugrad_failure& failure) {
  SimStream& s = own(stream);
  s.wait_until_idle();
  if (conditions_.lost) throw BackendError(PLUGRAD_DEVICE_LOST, "the simulated device is lost");
  {
    const std::lock_guard lock(world().mutex);
    world().clocks.host_learned(s.id(), s.accepted());
  }
  std::string message;
  if (s.clear(failure, message)) throw BackendError(PLUGRAD_DEVICE_ERROR, message);
}

}  // namespace plugrad::sim
