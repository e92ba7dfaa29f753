// The extension of together.h: ops that are submitted together have the results that they have one by one.
#include <sdk/conformance/submission.hpp>

#include <plugrad/sdk/together.h>

#include <cstring>
#include <deque>

namespace plugrad::conformance {
namespace {

const plugrad_together* extension(const Session& session) {
  const plugrad_backend& table = *session.plugin.table;
  return table.get_extension ? static_cast<const plugrad_together*>(table.get_extension(PLUGRAD_TOGETHER)) : nullptr;
}

bool whole(const plugrad_together& all) { return all.struct_size >= sizeof all && all.takes && all.run; }

void check_table(Session& session, Tally& tally) {
  const plugrad_together* const offered = extension(session);
  if (!offered) return tally.skip(std::string("the plugin does not offer ") + PLUGRAD_TOGETHER);
  tally.check(offered == extension(session), "get_extension returns a different table on a second call");
  tally.check(whole(*offered) && !offered->reserved, "struct_size is too small, or a function of the extension is null");
  tally.check(session.device.async(), "the plugin offers ops together, but the device has no streams");
}

// The attributes of an update; the second kind differs in a number.
struct UpdateAttributes {
  plugrad_sgd sgd{sizeof(plugrad_sgd), 1, 0.9, 0.01};
  plugrad_adam adam{sizeof(plugrad_adam), 1, 0.9, 0.999, 1e-8, 0.01};

  explicit UpdateAttributes(bool is_second) {
    if (is_second) sgd.momentum = adam.beta1 = 0.8;
  }
  const void* of(uint32_t opcode) const {
    return opcode == PLUGRAD_OP_SGD_STEP ? static_cast<const void*>(&sgd) : opcode == PLUGRAD_OP_ADAM_STEP ? &adam : nullptr;
  }
};

// The updates of several parameters, whose elements lie one behind the other in a block.
class Updates {
 public:
  // counts: elements of each parameter. One of seven parameters has other attributes, another one another rate.
  Updates(Session& session, Queue& queue, const OpInfo& op, uint8_t dtype, const std::vector<int64_t>& counts)
      : session_(session), queue_(queue), size_(element_size(dtype)) {
    for (const int64_t count : counts) add(op, dtype, count);
    std::vector<char> bytes(bytes_);
    Random random(7);
    for (uint64_t i = 0; i < bytes_; i += size_) {
      const double value = random.uniform(0.1, 1);
      const auto narrow = static_cast<float>(value);
      std::memcpy(bytes.data() + i, size_ == 4 ? static_cast<const void*>(&narrow) : &value, size_);
    }
    block_.emplace(session.device, bytes_);
    session.device.upload(queue, block_->buffer(), 0, bytes.data(), bytes_);
    for (One& each : all_) {
      for (plugrad_view& view : each.views)
        if (!is_immediate(view)) view.buffer = block_->buffer();
      for (const plugrad_view& view : each.views) each.pointers.push_back(&view);
      each.op.views = each.pointers.data();
      each.op.attributes = attributes_[each.is_second].of(op.opcode);
    }
  }
  Updates(const Updates&) = delete;

  Outcome run_alone(const plugrad_kernel* kernel) {
    for (One& each : all_)
      if (const Outcome outcome = session_.device.run(queue_, kernel, each.op); !outcome.ok()) return outcome;
    return {};
  }
  Outcome run_together(const plugrad_kernel* kernel, const plugrad_together& offered) {
    std::vector<const plugrad_op*> ops;
    for (One& each : all_) {
      each.op.number = queue_.last + 1 + ops.size();
      ops.push_back(&each.op);
    }
    const Outcome outcome = attempt("run", [&] {
      return offered.run(kernel, queue_.stream, ops.data(), static_cast<uint32_t>(ops.size()));
    });
    if (outcome.ok()) queue_.last += ops.size();
    return outcome;
  }
  std::vector<char> contents() {
    std::vector<char> bytes(bytes_);
    session_.device.download(queue_, bytes.data(), block_->buffer(), 0, bytes_);
    return bytes;
  }

 private:
  struct One {
    std::vector<plugrad_view> views;
    std::vector<const plugrad_view*> pointers;
    plugrad_op op{};
    bool is_second = false;
  };

  void add(const OpInfo& op, uint8_t dtype, int64_t count) {
    const uint64_t alignment = session_.device.info().alignment, place = all_.size();
    One& made = all_.emplace_back();
    made.is_second = place % 7 == 3;
    made.op.struct_size = sizeof made.op;
    made.op.opcode = op.opcode;
    made.op.outputs = static_cast<uint16_t>(op.outputs);
    made.op.inputs = static_cast<uint16_t>(op.inputs);
    for (int k = 0; k < op.operand_count(); ++k) {
      if (k > op.outputs) {
        made.views.push_back(number_view(place % 7 == 5 ? 0.75 : 0.5));
        made.views.back().dtype = dtype;
        continue;
      }
      plugrad_view view = vector_view(nullptr, count, dtype);
      view.offset = bytes_;
      made.views.push_back(view);
      bytes_ += (static_cast<uint64_t>(count) * size_ + alignment - 1) / alignment * alignment;
    }
  }

  Session& session_;
  Queue& queue_;
  const uint64_t size_;
  uint64_t bytes_ = 0;
  const UpdateAttributes attributes_[2] = {UpdateAttributes(false), UpdateAttributes(true)};
  std::deque<One> all_;
  std::optional<Block> block_;
};

const plugrad_kernel* taken_kernel(Session& session, const plugrad_together& offered, const OpInfo& op, uint8_t dtype) {
  if (!op.is_for(dtype)) return nullptr;
  const plugrad_kernel* const kernel =
      resolve(*session.plugin.table, session.device.handle(), question_for(op.opcode, dtype), PLUGRAD_IMMEDIATE);
  return kernel && !kernel->workspace && offered.takes(session.device.handle(), kernel) ? kernel : nullptr;
}

// Small parameters and large ones, of whole packs and not, and more than a launch may take.
void check_updates(Session& session, Tally& tally) {
  const plugrad_together* const offered = extension(session);
  if (!offered) return tally.skip(std::string("the plugin does not offer ") + PLUGRAD_TOGETHER);
  if (!whole(*offered) || !session.device.async())
    return tally.skip("the extension is incomplete (see together.table), or the device has no streams");
  std::vector<int64_t> counts = {1, 3, 4, 1000, 1023, 1024, 1025, 70000, 2, 100001};
  for (int64_t i = 0; i < 220; ++i) counts.push_back(1 + i % 11);
  int taken = 0;
  for (const OpInfo& op : kOps) {
    for (const uint8_t dtype : {PLUGRAD_F32, PLUGRAD_F64}) {
      if (op.shape != OpShape::update) continue;
      const plugrad_kernel* const kernel = taken_kernel(session, *offered, op, dtype);
      if (!kernel) continue;
      ++taken;
      Queue queue = session.device.make_queue();
      Updates alone(session, queue, op, dtype, counts), together(session, queue, op, dtype, counts);
      const std::string what = std::string(op.name) + " of " + dtype_info(dtype)->name;
      const Outcome one_by_one = alone.run_alone(kernel), at_once = together.run_together(kernel, *offered);
      tally.check(one_by_one.ok(), what + " returned " + one_by_one.text());
      tally.check(at_once.ok(), "several " + what + " together returned " + at_once.text());
      if (!one_by_one.ok() || !at_once.ok()) continue;
      tally.check(alone.contents() == together.contents(), "several " + what + " together have other bits than one by one");
      uint64_t done = 0;
      tally.check(session.device.sync(queue).ok() && session.device.table().completed(queue.stream, &done) == PLUGRAD_OK &&
                      done == queue.last,
                  "after sync completed returns " + std::to_string(done) + " where the last number is " +
                      std::to_string(queue.last));
    }
  }
  if (!taken) tally.skip("the plugin takes no updates of f32 and f64 together");
}

}  // namespace

std::vector<Case> together_cases() { return {{"together.table", check_table}, {"together.updates", check_updates}}; }

}  // namespace plugrad::conformance
