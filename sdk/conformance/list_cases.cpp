// The extension of list.h: a list of calls has the same results as its calls one by one.
#include <sdk/conformance/submission.hpp>

#include <deque>
#include <memory>

namespace plugrad::conformance {
namespace {

constexpr int64_t kElements = 5000;

plugrad_view vector_at(const Block& block, int64_t count = kElements, uint8_t dtype = PLUGRAD_F32) {
  return vector_view(block.buffer(), count, dtype);
}

// Calls at constant addresses, as a list on a queue.
class Calls {
 public:
  Calls(Session& session, Queue& queue) : session_(session), queue_(queue), offered_(*offered_lists(session)) {}
  ~Calls() { drop(); }
  Calls(const Calls&) = delete;

  void add(uint32_t opcode, std::initializer_list<plugrad_view> views) {
    Call& call = calls_.emplace_back();
    call.views = views;
    uint16_t layout = 0;
    for (const plugrad_view& view : call.views) {
      call.pointers.push_back(&view);
      layout |= view.layout;
    }
    call.kernel = resolve(*session_.plugin.table, session_.device.handle(), question_for(opcode, PLUGRAD_F32), layout);
    if (!call.kernel) throw Breach("resolve returned a kernel before, and now none");
    call.op.struct_size = sizeof call.op;
    call.op.opcode = opcode;
    call.op.views = call.pointers.data();
    call.op.outputs = 1;
    call.op.inputs = static_cast<uint16_t>(views.size() - 1);
    if (opcode == PLUGRAD_OP_GATHER) call.op.attributes = &call.axis;
    const uint64_t bytes = call.kernel->workspace ? call.kernel->workspace(call.kernel, &call.op) : 0;
    if (!bytes) return;
    call.workspace = std::make_unique<Block>(session_.device, bytes);
    call.op.workspace = call.workspace->buffer();
    call.op.workspace_bytes = bytes;
  }
  // Returns an operand for the caller to change; the next run marks the call as changed.
  plugrad_view& change(uint32_t call, size_t operand) {
    if (list_) changed_[call / 64] |= uint64_t{1} << call % 64;
    return calls_[call].views[operand];
  }

  Outcome make() {
    std::vector<plugrad_list_call> list;
    for (const Call& each : calls_) list.push_back({each.kernel, &each.op});
    changed_.assign((list.size() + 63) / 64, 0);
    return attempt("make",
                   [&] { return offered_.make(queue_.stream, list.data(), static_cast<uint32_t>(list.size()), 0, &list_); });
  }
  // Takes the numbers only if it returns OK.
  Outcome run() {
    Outcome outcome = attempt("run", [&] { return offered_.run(list_, queue_.last + 1, changed_.data()); });
    if (!outcome.ok()) return outcome;
    queue_.last += calls_.size();
    changed_.assign(changed_.size(), 0);
    return outcome;
  }
  void drop() {
    if (plugrad_list* const dropped = std::exchange(list_, nullptr)) offered_.drop(dropped);
  }
  uint64_t count() const { return calls_.size(); }

 private:
  struct Call {
    const plugrad_kernel* kernel;
    std::vector<plugrad_view> views;
    std::vector<const plugrad_view*> pointers;
    std::unique_ptr<Block> workspace;
    plugrad_axis axis{sizeof(plugrad_axis), 0};
    plugrad_op op{};
  };
  Session& session_;
  Queue& queue_;
  const plugrad_lists& offered_;
  std::deque<Call> calls_;
  std::vector<uint64_t> changed_;
  plugrad_list* list_ = nullptr;
};

// Whether the case can run here; else the reason is in the tally.
bool runnable(Session& session, Tally& tally) {
  const plugrad_lists* const offered = offered_lists(session);
  const auto skip = [&](const std::string& why) { return tally.skip(why), false; };
  if (!offered) return skip(std::string("the plugin does not offer ") + PLUGRAD_LISTS);
  if (!is_whole(*offered) || !session.device.async())
    return skip("the extension is incomplete (see list.table), or the device has no streams");
  const std::pair<uint32_t, uint16_t> needed[] = {{PLUGRAD_OP_FILL, PLUGRAD_IMMEDIATE},
                                                  {PLUGRAD_OP_ADD, PLUGRAD_IMMEDIATE},
                                                  {PLUGRAD_OP_ADD, 0},
                                                  {PLUGRAD_OP_MUL, 0},
                                                  {PLUGRAD_OP_COPY, 0},
                                                  {PLUGRAD_OP_SUM, 0},
                                                  {PLUGRAD_OP_GATHER, 0}};
  for (const auto& [opcode, layout] : needed)
    if (!resolve(*session.plugin.table, session.device.handle(), question_for(opcode, PLUGRAD_F32), layout))
      return skip(std::string("the plugin has no ") + op_info(opcode)->name + " of f32");
  Queue queue = session.device.make_queue();
  const Block some(session.device, kElements * sizeof(float));
  Calls plain(session, queue);
  plain.add(PLUGRAD_OP_FILL, {vector_at(some), number_view(0)});
  if (plain.make().status == PLUGRAD_UNSUPPORTED) return skip("make declines even a FILL");
  return true;
}

void check_table(Session& session, Tally& tally) {
  const plugrad_lists* const offered = offered_lists(session);
  if (!offered) return tally.skip(std::string("the plugin does not offer ") + PLUGRAD_LISTS);
  tally.check(offered == offered_lists(session), "get_extension returns a different table on a second call");
  tally.check(is_whole(*offered), "struct_size is too small, or a function of the extension is null");
  tally.check(session.device.async(), "the plugin offers lists, but the device has no streams");
}

float value_at(Session& session, Queue& queue, const Block& block, uint64_t offset = 0) {
  float value = -1;
  session.device.download(queue, &value, block.buffer(), offset, sizeof value);
  return value;
}

// a = start; four times a += 1; b = a; b *= b; c = a + b; out[0] = the sum of c.
constexpr int kFill = 0, kSum = 8;
void add_chain(Calls& calls, const Block& a, const Block& b, const Block& c, const Block& out) {
  calls.add(PLUGRAD_OP_FILL, {vector_at(a), number_view(0)});
  for (int i = 0; i < 4; ++i) calls.add(PLUGRAD_OP_ADD, {vector_at(a), vector_at(a), number_view(1)});
  calls.add(PLUGRAD_OP_COPY, {vector_at(b), vector_at(a)});
  calls.add(PLUGRAD_OP_MUL, {vector_at(b), vector_at(b), vector_at(b)});
  calls.add(PLUGRAD_OP_ADD, {vector_at(c), vector_at(a), vector_at(b)});
  calls.add(PLUGRAD_OP_SUM, {vector_at(out, 1), vector_at(c)});
}
float result_of_chain(int start) { return static_cast<float>(kElements * ((start + 4) + (start + 4) * (start + 4))); }

// Runs follow each other while earlier runs are in flight, with new numbers and a new place for the result.
void check_changes(Session& session, Tally& tally) {
  if (!runnable(session, tally)) return;
  constexpr int kRuns = 40;
  Queue queue = session.device.make_queue();
  const uint64_t bytes = kElements * sizeof(float), slot = session.device.info().alignment;
  const Block a(session.device, bytes), b(session.device, bytes), c(session.device, bytes);
  const Block out(session.device, slot * kRuns), other(session.device, bytes);
  Calls calls(session, queue);
  add_chain(calls, a, b, c, out);
  if (const Outcome made = calls.make(); !tally.check(made.ok(), "make returned " + made.text())) return;
  for (int i = 0; i < kRuns; ++i) {
    calls.change(kFill, 1) = number_view(i % 7);
    calls.change(kSum, 0).offset = static_cast<uint64_t>(i) * slot;
    if (i == kRuns / 2)  // c moves
      for (const auto& [call, operand] : {std::pair{7u, 0}, std::pair{8u, 1}})
        calls.change(call, static_cast<size_t>(operand)).buffer = other.buffer();
    const Outcome ran = calls.run();
    if (!tally.check(ran.ok(), "run " + std::to_string(i) + " returned " + ran.text())) return;
  }
  for (int i = 0; i < kRuns; ++i) {
    const float found = value_at(session, queue, out, static_cast<uint64_t>(i) * slot), expected = result_of_chain(i % 7);
    tally.check(found == expected, "run " + std::to_string(i) + " of a list whose numbers and places change made " +
                                       std::to_string(found) + ", expected " + std::to_string(expected));
  }
}

// More calls than a word of `changed` has bits; unchanged calls run again with the same operands.
void check_long(Session& session, Tally& tally) {
  if (!runnable(session, tally)) return;
  constexpr uint32_t kCalls = 200, kChanged = 130;
  Queue queue = session.device.make_queue();
  const Block a(session.device, kElements * sizeof(float));
  Calls calls(session, queue);
  for (uint32_t i = 0; i < kCalls; ++i) calls.add(PLUGRAD_OP_ADD, {vector_at(a), vector_at(a), number_view(1)});
  Calls first(session, queue);
  first.add(PLUGRAD_OP_FILL, {vector_at(a), number_view(0)});
  if (!tally.check(first.make().ok() && calls.make().ok(), "make fails for one call, or for 200")) return;
  tally.check(first.run().ok() && calls.run().ok() && calls.run().ok(), "run fails for one call, or for 200");
  calls.change(kChanged, 2) = number_view(1001);
  tally.check(calls.run().ok(), "run fails for a list of which one call changed");
  const float found = value_at(session, queue, a), expected = 3 * kCalls + 1000;
  tally.check(found == expected,
              "three runs of 200 additions made " + std::to_string(found) + ", expected " + std::to_string(expected));
}

// A list of a single call runs after a list of several calls; a second stream waits for both lists.
void check_order_in_list(Session& session, Tally& tally) {
  if (!runnable(session, tally)) return;
  Device& device = session.device;
  Queue queue = device.make_queue(), other = device.make_queue(PLUGRAD_COPY_STREAM);
  const uint64_t bytes = kElements * sizeof(float);
  const Block a(device, bytes), b(device, bytes), c(device, bytes), out(device, 64), copied(device, 64);
  Calls calls(session, queue), alone(session, queue);
  add_chain(calls, a, b, c, out);
  alone.add(PLUGRAD_OP_ADD, {vector_at(out, 1), vector_at(out, 1), number_view(1)});
  if (!tally.check(calls.make().ok() && alone.make().ok(), "make fails")) return;
  for (int i = 0; i < 4; ++i) {
    calls.change(kFill, 1) = number_view(i);
    tally.check(calls.run().ok() && alone.run().ok(), "run fails");
    uint64_t covered = queue.last;
    const Outcome waited = attempt("wait", [&] { return device.table().wait(other.stream, queue.stream, &covered); });
    tally.check(waited.ok() && covered == queue.last, "a wait for the last number of a list returned " + waited.text());
    device.copy(other, copy_of(device.place(copied.buffer(), 0), device.place(out.buffer(), 0), sizeof(float)));
    const float found = value_at(session, other, copied);
    tally.check(found == result_of_chain(i) + 1, "another stream that waits for a list reads " + std::to_string(found) +
                                                     ", expected " + std::to_string(result_of_chain(i) + 1));
  }
  uint64_t done = 0;
  tally.check(device.sync(queue).ok() && device.table().completed(queue.stream, &done) == PLUGRAD_OK && done == queue.last,
              "after sync completed returns " + std::to_string(done) + " where the last number of a list is " +
                  std::to_string(queue.last));
}

void check_failure(Session& session, Tally& tally) {
  if (!runnable(session, tally)) return;
  Device& device = session.device;
  Queue queue = device.make_queue();
  const Block a(device, kElements * sizeof(float)), index(device, 64), out(device, 64);
  const int64_t bad = kElements, good = 3;
  device.upload(queue, index.buffer(), 0, &bad, sizeof bad);
  Calls calls(session, queue);
  calls.add(PLUGRAD_OP_FILL, {vector_at(a), number_view(5)});
  calls.add(PLUGRAD_OP_GATHER, {vector_at(out, 1), vector_at(a), vector_at(index, 1, PLUGRAD_I64)});
  calls.add(PLUGRAD_OP_FILL, {vector_at(a), number_view(6)});
  if (!tally.check(calls.make().ok(), "make fails")) return;
  for (int round = 0; round < 2; ++round) {  // the second time, a run before it succeeds
    if (round) {
      device.upload(queue, index.buffer(), 0, &good, sizeof good);
      tally.check(calls.run().ok() && value_at(session, queue, out) == 5, "a list does not run after sync");
      device.upload(queue, index.buffer(), 0, &bad, sizeof bad);
    }
    const uint64_t first = queue.last + 1;
    const Outcome ran = calls.run();
    tally.check(ran.ok(), "run returned the failure of a call: " + ran.text() + "; only a later call may");
    plugrad_failure failure{};
    const Outcome sync = device.sync(queue, &failure);
    tally.check(sync.status == PLUGRAD_DEVICE_ERROR && failure.status == PLUGRAD_INDEX_ERROR && failure.first <= first + 1 &&
                    first + 1 <= failure.last && failure.first >= first && failure.last <= queue.last,
                "sync after a list of which call " + std::to_string(first + 1) + " fails returned " + sync.text() + " for " +
                    std::to_string(failure.first) + " .. " + std::to_string(failure.last));
    tally.check(device.sync(queue).ok(), "sync does not clear the failure of a list");
  }
}

// The list is dropped while its last run is in flight.
void check_drop(Session& session, Tally& tally) {
  if (!runnable(session, tally)) return;
  Queue queue = session.device.make_queue();
  const uint64_t bytes = kElements * sizeof(float);
  const Block a(session.device, bytes), b(session.device, bytes), c(session.device, bytes), out(session.device, 64);
  for (int i = 0; i < 30; ++i) {
    auto calls = std::make_unique<Calls>(session, queue);
    add_chain(*calls, a, b, c, out);
    calls->change(kFill, 1) = number_view(i % 5);
    tally.check(calls->make().ok() && calls->run().ok(), "a list is refused after others were dropped");
    calls->drop();
    const float found = value_at(session, queue, out);  // workspaces must live until here
    tally.check(found == result_of_chain(i % 5), "a list that was dropped after its run made " + std::to_string(found) +
                                                     ", expected " + std::to_string(result_of_chain(i % 5)));
  }
}

}  // namespace

std::vector<Case> list_cases() {
  return {{"list.table", check_table},         {"list.changes", check_changes}, {"list.long", check_long},
          {"list.order", check_order_in_list}, {"list.failure", check_failure}, {"list.drop", check_drop}};
}

}  // namespace plugrad::conformance
