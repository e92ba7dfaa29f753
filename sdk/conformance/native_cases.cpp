// The extension of native.h: native handles to order streams, and notices. A second stream of the plugin takes the place of
// another library's stream.
#include <sdk/conformance/submission.hpp>

#include <plugrad/sdk/native.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace plugrad::conformance {
namespace {

constexpr int64_t kCount = 100000;
constexpr int kChain = 50;
constexpr std::chrono::seconds kPatience{10};

const plugrad_native* extension(const Session& session) {
  const plugrad_backend& table = *session.plugin.table;
  return table.get_extension ? static_cast<const plugrad_native*>(table.get_extension(PLUGRAD_NATIVE)) : nullptr;
}

bool whole(const plugrad_native& native) {
  return native.struct_size >= sizeof native && native.handle && native.wait && native.signal && native.notify;
}

// Returns the extension if the case can run here. Otherwise returns null and records the reason in the tally.
const plugrad_native* runnable(const Session& session, const Vectors& vectors, Tally& tally) {
  const plugrad_native* native = extension(session);
  if (!native) tally.skip(std::string("the plugin does not offer ") + PLUGRAD_NATIVE);
  else if (!whole(*native) || !session.device.async())
    tally.skip("the extension is incomplete (see native.table), or the device has no streams");
  else if (!vectors.lacking().empty()) tally.skip(vectors.lacking());
  else return native;
  return nullptr;
}

// A submitting function of the extension. It takes the queue's next number only if it returns OK.
using Submission = plugrad_status (*)(plugrad_stream*, uint64_t, void*);
Outcome submit(Queue& queue, const char* what, Submission function, void* native) {
  Outcome outcome = attempt(what, [&] { return function(queue.stream, queue.last + 1, native); });
  if (outcome.ok()) ++queue.last;
  return outcome;
}

void* handle_of(const plugrad_native& native, const Queue& queue) {
  void* handle = nullptr;
  const Outcome outcome = attempt("handle", [&] { return native.handle(queue.stream, &handle); });
  if (!outcome.ok()) throw Breach("handle returned " + outcome.text());
  return handle;
}

void check_table(Session& session, Tally& tally) {
  const plugrad_native* native = extension(session);
  if (!native) return tally.skip(std::string("the plugin does not offer ") + PLUGRAD_NATIVE);
  tally.check(native == extension(session), "get_extension returns a different table on a second call");
  tally.check(native->struct_size >= sizeof *native, "struct_size is " + std::to_string(native->struct_size) +
                                                         ", expected at least " + std::to_string(sizeof *native));
  tally.check(whole(*native) && !native->reserved, "a function of the extension is null, or reserved is not 0");
  tally.check(session.device.async(), "the plugin offers native streams, but the device has no streams");
}

void check_handle(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  const plugrad_native* native = runnable(session, vectors, tally);
  if (!native) return;
  const Queue first = session.device.make_queue(), second = session.device.make_queue();
  void* const handle = handle_of(*native, first);
  tally.check(handle == handle_of(*native, first), "handle returns a different native handle on a second call");
  tally.check(handle != handle_of(*native, second), "two streams have the same native handle");
}

// A stream adds repeatedly to a vector; a second stream copies the vector. A copy started too early lacks additions.
Outcome add_chain(const Vectors& vectors, Queue& queue, plugrad_buffer* buffer) {
  Outcome outcome = vectors.fill(queue, buffer, 0);
  for (int i = 0; i < kChain && outcome.ok(); ++i) outcome = vectors.add_one(queue, buffer);
  return outcome;
}

enum class By { wait, signal };

void check_order(Session& session, Tally& tally, By by) {
  const Vectors vectors(session, kCount);
  const plugrad_native* native = runnable(session, vectors, tally);
  if (!native) return;
  Device& device = session.device;
  const char* const what = by == By::wait ? "wait" : "signal";
  for (int round = 0; round < 4; ++round) {
    Queue earlier = device.make_queue(), later = device.make_queue(PLUGRAD_COPY_STREAM);
    const Block block(device, vectors.bytes()), copied(device, vectors.bytes());
    tally.check(add_chain(vectors, earlier, block.buffer()).ok(), "a chain of additions was refused");
    const Outcome ordered = by == By::wait ? submit(later, what, native->wait, handle_of(*native, earlier))
                                           : submit(earlier, what, native->signal, handle_of(*native, later));
    tally.check(ordered.ok(), std::string(what) + " returned " + ordered.text());
    const Outcome copy =
        device.copy(later, copy_of(device.place(copied.buffer(), 0), device.place(block.buffer(), 0), vectors.bytes()));
    tally.check(copy.ok(), std::string("a copy after a ") + what + " returned " + copy.text());
    tally.check(vectors.holds(later, copied.buffer(), kChain),
                std::string("work after a ") + what + " started before the work that it must wait for");
    tally.check(device.sync(earlier).ok() && device.sync(later).ok(), std::string("sync failed after a ") + what);
  }
}

// A stream waits for its own handle, and a third stream waits for the number of this wait. Both must wait for the work of
// the other library.
void check_number(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  const plugrad_native* native = runnable(session, vectors, tally);
  if (!native) return;
  Device& device = session.device;
  Queue producer = device.make_queue(), ours = device.make_queue(), third = device.make_queue(PLUGRAD_COPY_STREAM);
  const Block block(device, vectors.bytes()), copied(device, vectors.bytes());
  tally.check(add_chain(vectors, producer, block.buffer()).ok(), "a chain of additions was refused");
  const Outcome signal = submit(producer, "signal", native->signal, handle_of(*native, ours));
  const Outcome wait = submit(ours, "wait", native->wait, handle_of(*native, ours));
  tally.check(signal.ok() && wait.ok(), "signal returned " + signal.text() + ", wait for the own handle " + wait.text());
  uint64_t covered = ours.last;
  const Outcome other = attempt("wait", [&] { return session.plugin.table->wait(third.stream, ours.stream, &covered); });
  tally.check(other.ok() && covered == ours.last, "a wait for the number of a native wait returned " + other.text());
  device.copy(third, copy_of(device.place(copied.buffer(), 0), device.place(block.buffer(), 0), vectors.bytes()));
  tally.check(vectors.holds(third, copied.buffer(), kChain),
              "work after the number of a native wait started before the work that the native wait covers");
  const auto is_done = [&](Queue& queue) {
    uint64_t number = 0;
    return session.device.sync(queue).ok() && session.plugin.table->completed(queue.stream, &number) == PLUGRAD_OK &&
           number == queue.last;
  };
  tally.check(is_done(ours), "the number of a native wait is not completed after sync");
  tally.check(vectors.add_one(producer, block.buffer()).ok(), "a stream refuses the number that follows a signal's");
  tally.check(is_done(producer), "the numbers of a signal and of work after it are not completed after sync");
}

struct Told {
  std::atomic<int> count{0};
  static void note(void* context) { ++static_cast<Told*>(context)->count; }
  bool comes(int expected) const {
    for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;) {
      if (count >= expected) return true;
      std::this_thread::yield();
    }
    return false;
  }
};

Outcome notify(const plugrad_native& native, const Queue& queue, uint64_t number, Told& told) {
  return attempt("notify", [&] { return native.notify(queue.stream, number, Told::note, &told); });
}

// Contexts live as long as the process: a late callback must not write to a stack frame that no longer exists.
Told& new_told() { return *new Told; }

void check_notice(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  const plugrad_native* native = runnable(session, vectors, tally);
  if (!native) return;
  Queue queue = session.device.make_queue();
  const Block block(session.device, vectors.bytes());
  Told& told = new_told();
  keep(&told);
  tally.check(add_chain(vectors, queue, block.buffer()).ok(), "a chain of additions was refused");
  const Outcome outcome = notify(*native, queue, queue.last, told);
  const bool before = told.count > 0;
  uint64_t number = 0;
  const plugrad_status status = session.plugin.table->completed(queue.stream, &number);
  tally.check(!before || (status == PLUGRAD_OK && number >= queue.last), "notify called back before the number was done");
  tally.check(outcome.ok() && told.comes(1), "notify did not call back: " + outcome.text());
  session.plugin.table->completed(queue.stream, &number);
  tally.check(number >= queue.last,
              "after a notice of " + std::to_string(queue.last) + " completed returns " + std::to_string(number));
  tally.check(vectors.holds(queue, block.buffer(), kChain), "notify called back before the work was done");
  tally.check(notify(*native, queue, queue.last, told).ok() && told.comes(2),
              "notify does not call back for a number that is done");
  tally.check(notify(*native, queue, 0, told).ok() && told.comes(3), "notify does not call back for number 0");
  const Outcome early = notify(*native, queue, queue.last + 1, told);
  tally.check(early.status == PLUGRAD_INVALID,
              "notify of a number that was not submitted yet returned " + early.text() + ", expected INVALID");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  tally.check(told.count == 3, "notify called back " + std::to_string(told.count) + " times for 3 calls that returned OK");
}

// Many notices, from two threads, while work is submitted.
void check_notices(Session& session, Tally& tally) {
  constexpr int kNotices = 100;
  const Vectors vectors(session, 1000);
  const plugrad_native* native = runnable(session, vectors, tally);
  if (!native) return;
  Queue queue = session.device.make_queue();
  const Block block(session.device, vectors.bytes());
  Told &inside = new_told(), &beside = new_told();
  keep(&inside);
  keep(&beside);
  vectors.fill(queue, block.buffer(), 0);
  const Queue seen = queue;
  std::thread other([&] {
    for (int i = 0; i < kNotices; ++i)
      if (native->notify(seen.stream, seen.last, Told::note, &beside) != PLUGRAD_OK) tally.fail("notify failed on a thread");
  });
  for (int i = 0; i < kNotices; ++i) {
    vectors.add_one(queue, block.buffer());
    tally.check(notify(*native, queue, queue.last, inside).ok(), "notify failed");
  }
  other.join();
  tally.check(session.device.sync(queue).ok(), "sync failed");
  tally.check(inside.comes(kNotices) && beside.comes(kNotices), "notices were lost");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  tally.check(inside.count == kNotices && beside.count == kNotices, "notices came more than once");
}

void check_failed_notice(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  const plugrad_native* native = runnable(session, vectors, tally);
  if (!native) return;
  if (!claimed(session, question_for(PLUGRAD_OP_GATHER, PLUGRAD_F32)))
    return tally.skip("the plugin has no GATHER of f32 that could fail");
  Queue queue = session.device.make_queue();
  const BadGather bad(session, queue);
  Told& told = new_told();
  keep(&told);
  bad.submit(queue);
  tally.check(notify(*native, queue, queue.last, told).ok() && told.comes(1),
              "notify does not call back for the number of an op that failed");
  tally.check(session.device.sync(queue).status == PLUGRAD_DEVICE_ERROR, "sync does not return DEVICE_ERROR after a notice");
}

}  // namespace

std::vector<Case> native_cases() {
  return {{"native.table", check_table},
          {"native.handle", check_handle},
          {"native.wait", [](Session& session, Tally& tally) { check_order(session, tally, By::wait); }},
          {"native.signal", [](Session& session, Tally& tally) { check_order(session, tally, By::signal); }},
          {"native.number", check_number},
          {"native.notice", check_notice},
          {"native.notices", check_notices},
          {"native.failed_notice", check_failed_notice}};
}

}  // namespace plugrad::conformance
