// Batches of the extension list.h: ops in a single submission have the same results as ops submitted one by one.
#include <sdk/conformance/submission.hpp>

#include <cstring>
#include <deque>

namespace plugrad::conformance {
namespace {

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

// The updates of several parameters. The parameters' elements are placed in a block, each array behind the previous array.
class Updates {
 public:
  // counts: elements of each parameter. Of every seven parameters, the fourth has different attributes, and the sixth has a
  // different rate.
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
  Outcome run_as_batch(const plugrad_kernel* kernel, const plugrad_lists& offered) {
    std::vector<plugrad_list_call> calls;
    for (One& each : all_) calls.push_back({kernel, &each.op});
    plugrad_list* list = nullptr;
    const Outcome made = attempt("make", [&] {
      return offered.make(queue_.stream, calls.data(), static_cast<uint32_t>(calls.size()),
                          PLUGRAD_LIST_ONCE | PLUGRAD_LIST_INDEPENDENT, &list);
    });
    if (!made.ok()) return made;
    if (!list) throw Breach("make returned OK and no list");
    const Outcome ran = attempt("run", [&] { return offered.run(list, queue_.last + 1, nullptr); });
    offered.drop(list);
    if (ran.ok()) queue_.last += calls.size();
    return ran;
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

const plugrad_kernel* kernel_for_batches(Session& session, const plugrad_lists& offered, const OpInfo& op, uint8_t dtype) {
  if (!op.is_for(dtype)) return nullptr;
  const plugrad_kernel* const kernel =
      resolve(*session.plugin.table, session.device.handle(), question_for(op.opcode, dtype), PLUGRAD_IMMEDIATE);
  return kernel && !kernel->workspace && offered.batches(session.device.handle(), kernel) ? kernel : nullptr;
}

// Small and large parameters, with and without whole packs, and more parameters than a launch may take.
void check_batches(Session& session, Tally& tally) {
  const plugrad_lists* const offered = offered_lists(session);
  if (!offered) return tally.skip(std::string("the plugin does not offer ") + PLUGRAD_LISTS);
  if (!is_whole(*offered) || !session.device.async())
    return tally.skip("the extension is incomplete (see list.table), or the device has no streams");
  if (!offered->batches) return tally.skip("the plugin takes no batches");
  std::vector<int64_t> counts = {1, 3, 4, 1000, 1023, 1024, 1025, 70000, 2, 100001};
  for (int64_t i = 0; i < 220; ++i) counts.push_back(1 + i % 11);
  int taken = 0;
  for (const OpInfo& op : kOps) {
    for (const uint8_t dtype : {PLUGRAD_F32, PLUGRAD_F64}) {
      if (op.shape != OpShape::update) continue;
      const plugrad_kernel* const kernel = kernel_for_batches(session, *offered, op, dtype);
      if (!kernel) continue;
      ++taken;
      Queue queue = session.device.make_queue();
      Updates alone(session, queue, op, dtype, counts), together(session, queue, op, dtype, counts);
      const std::string what = std::string(op.name) + " of " + dtype_info(dtype)->name;
      const Outcome one_by_one = alone.run_alone(kernel), at_once = together.run_as_batch(kernel, *offered);
      tally.check(one_by_one.ok(), what + " returned " + one_by_one.text());
      tally.check(at_once.ok(), "a batch of " + what + " returned " + at_once.text());
      if (!one_by_one.ok() || !at_once.ok()) continue;
      tally.check(alone.contents() == together.contents(), "a batch of " + what + " has other bits than one by one");
      uint64_t done = 0;
      tally.check(session.device.sync(queue).ok() && session.device.table().completed(queue.stream, &done) == PLUGRAD_OK &&
                      done == queue.last,
                  "after sync completed returns " + std::to_string(done) + " where the last number is " +
                      std::to_string(queue.last));
    }
  }
  if (!taken) tally.skip("the plugin takes no batches of updates of f32 and f64");
}

}  // namespace

std::vector<Case> batch_cases() { return {{"list.batches", check_batches}}; }

}  // namespace plugrad::conformance
