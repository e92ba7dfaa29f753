// Failures: indices out of range, with and without streams.
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/submission.hpp>
#include <sdk/conformance/trial.hpp>

namespace plugrad::conformance {
namespace {

constexpr int64_t kCount = 100;

constexpr long double kExtent = -0x1p40L;  // put_index replaces it by the extent of the axis

bool scatters(uint32_t opcode) { return opcode == PLUGRAD_OP_SCATTER_ADD || opcode == PLUGRAD_OP_SCATTER_SUM; }

// Returns the extent of the indexed axis.
int64_t extent_of(const Problem& problem, uint32_t opcode) {
  if (opcode == PLUGRAD_OP_MAX_POOL_BACKWARD) {  // places in a whole plane
    const Shape& plane = problem.outputs[0].shape();
    int64_t count = 1;
    for (size_t axis = 2; axis < plane.size(); ++axis) count *= plane[axis];
    return count;
  }
  if (opcode == PLUGRAD_OP_CROSS_ENTROPY) return problem.inputs[0].shape().back();
  const Array& selected = scatters(opcode) ? problem.outputs[0] : problem.inputs[0];
  return selected.shape()[static_cast<size_t>(problem.attributes_as<plugrad_axis>().axis)];
}

void put_index(Problem& problem, uint32_t opcode, long double value, Random& random) {
  const long double bad = value == kExtent ? static_cast<long double>(extent_of(problem, opcode)) : value;
  Array& index = problem.inputs[scatters(opcode) ? 0 : 1];
  index.set(random.below(index.count()), bad);
}

// An op with a single bad index must fail with INDEX_ERROR and write nothing but its outputs.
void check_bad_index(Session& session, Tally& tally, const Question& question, long double value, bool strided) {
  const uint32_t opcode = question.op->opcode;
  const OpRow& row = row_of(opcode);
  const std::string title = text_of(question) + " [index " +
                            (value == kExtent ? "of the extent" : text_of(PLUGRAD_I64, value)) +
                            (strided ? ", strided]" : "]");
  const plugrad_kernel* kernel =
      resolve(session.device.table(), session.device.handle(), question, strided ? PLUGRAD_STRIDED : 0);
  if (!kernel) return;
  note_running("failure.indices " + title);
  Queue queue = session.device.make_queue();
  Random random(session.settings.seed);
  for (Problem& problem : row.problems(question, random)) {
    if (problem.large) continue;
    put_index(problem, opcode, value, random);
    Arrangement dense;
    dense.operands.resize(question.dtypes.size());
    if (strided) dense.operands[question.op->outputs + (scatters(opcode) ? 0 : 1)].form = Form::stepped;
    Batch batch(session.device, queue, row, question, kernel);
    batch.add(laid_out(row, question, problem, dense, session.device.info().alignment));
    plugrad_failure failure{};
    Outcome outcome;
    try {
      outcome = batch.run(&failure);
    } catch (const Breach& breach) {
      tally.fail(title + ": " + breach.what());
      return;
    }
    const Outcome& ran = batch.trials()[0].outcome;
    const plugrad_status status = session.device.async() && ran.ok() ? failure.status : ran.status;
    tally.check(status == PLUGRAD_INDEX_ERROR, title + " " + text_of(batch.trials()[0]) + ": run returned " + ran.text() +
                                                   ", sync " + outcome.text() + "; expected INDEX_ERROR");
    batch.verify_surroundings(tally, title);
  }
}

void check_indices(Session& session, Tally& tally) {
  bool any = false;
  for (const uint32_t opcode : {PLUGRAD_OP_GATHER, PLUGRAD_OP_SCATTER_ADD, PLUGRAD_OP_SCATTER_SUM, PLUGRAD_OP_CROSS_ENTROPY,
                                PLUGRAD_OP_MAX_POOL_BACKWARD}) {
    for (const DTypeInfo& info : kDTypes) {
      if (!op_info(opcode)->is_for(info.dtype)) continue;
      const Question question = question_for(opcode, info.dtype);
      if (!claimed(session, question)) continue;
      any = true;
      check_bad_index(session, tally, question, kExtent, false);
      check_bad_index(session, tally, question, kExtent, true);
      if (info.dtype != PLUGRAD_F32) continue;
      for (const long double value : {1000000.0L, -1.0L, 0x1p62L, -0x1p63L, 0x1p32L, 0x1p61L})
        check_bad_index(session, tally, question, value, false);
    }
  }
  if (!any) tally.skip("no op takes indices");
}

bool runnable(Session& session, const Vectors& vectors, Tally& tally) {
  if (!session.device.async()) tally.skip("the device has no streams");
  else if (!vectors.lacking().empty()) tally.skip(vectors.lacking());
  else if (!claimed(session, question_for(PLUGRAD_OP_GATHER, PLUGRAD_F32)))
    tally.skip("the plugin has no GATHER of f32 that could fail");
  else return true;
  return false;
}

void check_sync(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  if (!runnable(session, vectors, tally)) return;
  Device& device = session.device;
  Queue queue = device.make_queue();
  const Block block(device, vectors.bytes());
  const BadGather bad(session, queue);
  vectors.fill(queue, block.buffer(), 1);
  tally.check(bad.submit(queue).ok(), "run returned the failure of an op on a stream; only a later call may");
  const uint64_t failed = queue.last;
  // Later submissions are accepted, or refused with DEVICE_ERROR; a refused number is used again.
  for (int i = 0; i < 20; ++i) {
    const Outcome outcome = vectors.fill(queue, block.buffer(), 2);
    tally.check(outcome.ok() || outcome.status == PLUGRAD_DEVICE_ERROR,
                "an op after a failure returned " + outcome.text() + ", expected OK or DEVICE_ERROR");
  }
  float got = 0;
  const Outcome read = device.copy(queue, copy_of(device.host_place(&got), device.place(block.buffer(), 0), sizeof got));
  tally.check(read.status == PLUGRAD_DEVICE_ERROR,
              "a copy to the host after a failure returned " + read.text() + ", expected DEVICE_ERROR");
  plugrad_failure failure{};
  const Outcome sync = device.sync(queue, &failure);
  tally.check(sync.status == PLUGRAD_DEVICE_ERROR,
              "sync after a failure returned " + sync.text() + ", expected DEVICE_ERROR");
  tally.check(failure.status == PLUGRAD_INDEX_ERROR && failure.first <= failed && failed <= failure.last &&
                  failure.first >= 1 && failure.last <= queue.last,
              "sync says that " + std::to_string(failure.first) + " .. " + std::to_string(failure.last) + " failed with " +
                  status_name(failure.status) + "; op " + std::to_string(failed) + " of " + std::to_string(queue.last) +
                  " failed with INDEX_ERROR");
  tally.check(device.sync(queue).ok(), "sync does not clear the failure that it returned");
  const Outcome after = vectors.fill(queue, block.buffer(), 3);
  tally.check(after.ok() && vectors.holds(queue, block.buffer(), 3), "a stream accepts no work after sync: " + after.text());
}

void check_completed(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  if (!runnable(session, vectors, tally)) return;
  Queue queue = session.device.make_queue();
  const BadGather bad(session, queue);
  bad.submit(queue);
  uint64_t number = 0;
  for (int i = 0; i < 100000000 && number < queue.last; ++i) session.plugin.table->completed(queue.stream, &number);
  tally.check(number == queue.last, "completed does not reach the number of an op that failed");
  plugrad_status status = session.plugin.table->completed(queue.stream, &number);
  tally.check(status == PLUGRAD_DEVICE_ERROR, std::string("completed returns ") + status_name(status) +
                                                  " while a failure waits for sync, expected DEVICE_ERROR");
  tally.check(session.device.sync(queue).status == PLUGRAD_DEVICE_ERROR,
              "sync does not return DEVICE_ERROR after completed did");
  status = session.plugin.table->completed(queue.stream, &number);
  tally.check(status == PLUGRAD_OK && number == queue.last,
              "completed after sync is not OK, or not the last number submitted");
}

void check_other_stream(Session& session, Tally& tally) {
  const Vectors vectors(session, kCount);
  if (!runnable(session, vectors, tally)) return;
  Queue queue = session.device.make_queue(), other = session.device.make_queue();
  const Block block(session.device, vectors.bytes());
  const BadGather bad(session, queue);
  bad.submit(queue);
  const Outcome outcome = vectors.fill(other, block.buffer(), 4);
  tally.check(outcome.ok() && vectors.holds(other, block.buffer(), 4) && session.device.sync(other).ok(),
              "a failure on one stream affects another: " + outcome.text());
  tally.check(session.device.sync(queue).status == PLUGRAD_DEVICE_ERROR,
              "sync of another stream cleared this stream's failure");
}

}  // namespace

std::vector<Case> failure_cases() {
  return {{"failure.indices", check_indices},
          {"failure.sync", check_sync},
          {"failure.completed", check_completed},
          {"failure.other_stream", check_other_stream}};
}

}  // namespace plugrad::conformance
