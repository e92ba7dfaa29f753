// Streams: order, numbers and waits.
#include <sdk/conformance/submission.hpp>

#include <chrono>
#include <thread>

namespace plugrad::conformance {
namespace {

constexpr int64_t kCount = 1000;

// Returns whether a case about streams can run here. If not, records the reason.
bool runnable(const Session& session, const Vectors& vectors, Tally& tally) {
  if (!session.device.async()) tally.skip("the device has no streams");
  else if (!vectors.lacking().empty()) tally.skip(vectors.lacking());
  return session.device.async() && vectors.lacking().empty();
}

struct Progress {
  plugrad_status status;
  uint64_t number;
};
Progress completed(const Session& session, const Queue& queue) {
  Progress progress{PLUGRAD_OK, 0};
  progress.status = session.plugin.table->completed(queue.stream, &progress.number);
  return progress;
}

// Polls until the number is reached. Returns false after ten seconds.
bool reaches(const Session& session, const Queue& queue, uint64_t number, Tally& tally) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  uint64_t before = 0;
  while (std::chrono::steady_clock::now() < deadline) {
    const Progress progress = completed(session, queue);
    if (progress.number < before || progress.number > queue.last) {
      tally.fail("completed returned " + std::to_string(progress.number) + " after " + std::to_string(before) + ", with " +
                 std::to_string(queue.last) + " submitted; it must neither decrease nor exceed that");
      return false;
    }
    before = progress.number;
    if (before >= number) return true;
    std::this_thread::yield();
  }
  return false;
}

void check_roles(Session& session, Tally& tally) {
  if (!session.device.async()) return tally.skip("the device has no streams");
  Queue compute = session.device.make_queue(PLUGRAD_COMPUTE_STREAM), copies = session.device.make_queue(PLUGRAD_COPY_STREAM);
  tally.check(compute.stream != copies.stream, "stream_create returned the same stream twice");
  for (Queue* queue : {&compute, &copies}) {
    tally.check(session.device.sync(*queue).ok(), "sync of a stream without submissions failed");
    tally.check(completed(session, *queue).number == 0, "completed of a stream without submissions is not 0");
  }
}

void check_numbers(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  if (!runnable(session, vectors, tally)) return;
  Queue queue = session.device.make_queue();
  const Block block(session.device, vectors.bytes());
  for (int i = 0; i < 100; ++i) {
    const Outcome outcome = vectors.fill(queue, block.buffer(), static_cast<float>(i));
    if (!tally.check(outcome.ok(), "FILL number " + std::to_string(i + 1) + " returned " + outcome.text())) return;
    const Progress progress = completed(session, queue);
    tally.check(
        progress.status == PLUGRAD_OK && progress.number <= queue.last,
        "completed returned " + std::to_string(progress.number) + " with " + std::to_string(queue.last) + " submitted");
  }
  tally.check(reaches(session, queue, 100, tally), "completed does not reach the last number submitted");
  tally.check(vectors.holds(queue, block.buffer(), 99), "the buffer does not hold the value of the last of 100 FILLs");
  tally.check(session.device.sync(queue).ok() && session.device.sync(queue).ok(),
              "sync failed on a stream without failures");
  tally.check(completed(session, queue).number == queue.last, "after sync, completed is not the last number submitted");
}

void check_order(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  if (!runnable(session, vectors, tally)) return;
  Queue queue = session.device.make_queue();
  const Block block(session.device, vectors.bytes()), other(session.device, vectors.bytes());
  Device& device = session.device;
  vectors.fill(queue, block.buffer(), 0);
  for (int i = 0; i < 200; ++i) {
    Outcome outcome = vectors.add_one(queue, block.buffer());
    if (outcome.ok() && i % 10 == 9) {  // copies there and back keep the stream's order too
      outcome =
          device.copy(queue, copy_of(device.place(other.buffer(), 0), device.place(block.buffer(), 0), vectors.bytes()));
      if (outcome.ok()) outcome = vectors.fill(queue, block.buffer(), -1);
      if (outcome.ok())
        outcome =
            device.copy(queue, copy_of(device.place(block.buffer(), 0), device.place(other.buffer(), 0), vectors.bytes()));
    }
    if (!tally.check(outcome.ok(), "an op or copy of a chain returned " + outcome.text())) return;
  }
  tally.check(vectors.holds(queue, block.buffer(), 200), "200 additions on one stream do not add up to 200");
}

void check_depth(Session& session, Tally& tally) {
  const Vectors vectors(session, 100000);
  if (!runnable(session, vectors, tally)) return;
  Queue queue = session.device.make_queue();
  const Block block(session.device, vectors.bytes());
  vectors.fill(queue, block.buffer(), 0);
  for (int i = 0; i < 255; ++i)
    if (!tally.check(vectors.add_one(queue, block.buffer()).ok(), "a queue must hold 256 submissions")) return;
  tally.check(vectors.holds(queue, block.buffer(), 255), "255 additions without a wait do not add up to 255");
}

void check_host_source(Session& session, Tally& tally) {
  const Vectors vectors(session, 50000);
  if (!runnable(session, vectors, tally)) return;
  Queue queue = session.device.make_queue();
  const Block block(session.device, vectors.bytes());
  for (int round = 0; round < 8; ++round) {
    std::vector<float> source(50000, static_cast<float>(round));
    vectors.add_one(queue, block.buffer());  // the copy has to follow this work
    session.device.upload(queue, block.buffer(), 0, source.data(), vectors.bytes());
    std::fill(source.begin(), source.end(), -77.0f);
    tally.check(vectors.holds(queue, block.buffer(), static_cast<float>(round)),
                "a copy from the host read its source after it had returned");
  }
}

void check_wait(Session& session, Tally& tally) {
  const Vectors vectors(session, 100000);
  if (!runnable(session, vectors, tally)) return;
  Queue first = session.device.make_queue(), second = session.device.make_queue(PLUGRAD_COPY_STREAM);
  const Block block(session.device, vectors.bytes()), copied(session.device, vectors.bytes());
  const plugrad_backend& table = *session.plugin.table;
  Device& device = session.device;
  vectors.fill(first, block.buffer(), 0);
  for (int i = 0; i < 50; ++i) vectors.add_one(first, block.buffer());
  uint64_t covered = first.last;
  const Outcome outcome = attempt("wait", [&] { return table.wait(second.stream, first.stream, &covered); });
  tally.check(outcome.ok() && covered >= first.last && covered <= first.last,
              "wait returned " + outcome.text() + " and covers number " + std::to_string(covered) + " of " +
                  std::to_string(first.last));
  const Outcome copy =
      device.copy(second, copy_of(device.place(copied.buffer(), 0), device.place(block.buffer(), 0), vectors.bytes()));
  tally.check(copy.ok(), "a copy after a wait returned " + copy.text());
  tally.check(vectors.holds(second, copied.buffer(), 50), "a copy after a wait did not see the work that it waited for");
  tally.check(completed(session, first).number >= covered,
              "work after a wait is done, but completed of the other stream is below the number that the wait covers");
  uint64_t early = 1;
  const Outcome again = attempt("wait", [&] { return table.wait(second.stream, first.stream, &early); });
  tally.check(again.ok() && early >= 1 && early <= first.last,
              "wait for a number completed long before returned " + again.text());
}

void check_wait_for_future(Session& session, Tally& tally) {
  if (!session.device.async()) return tally.skip("the device has no streams");
  Queue first = session.device.make_queue(), second = session.device.make_queue();
  uint64_t number = first.last + 1;
  const Outcome outcome = attempt("wait for a number that was not submitted yet",
                                  [&] { return session.plugin.table->wait(second.stream, first.stream, &number); });
  tally.check(outcome.status == PLUGRAD_INVALID,
              "wait for a number that was not submitted yet returned " + outcome.text() + ", expected INVALID");
  tally.check(session.device.sync(second).ok(), "sync after a refused wait failed");
}

}  // namespace

std::vector<Case> stream_cases() {
  return {{"stream.roles", check_roles},
          {"stream.numbers", check_numbers},
          {"stream.order", check_order},
          {"stream.depth", check_depth},
          {"stream.host_source", check_host_source},
          {"stream.wait", check_wait},
          {"stream.wait_for_future", check_wait_for_future}};
}

}  // namespace plugrad::conformance
