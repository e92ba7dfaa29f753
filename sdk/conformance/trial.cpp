#include <sdk/conformance/trial.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace plugrad::conformance {

uint16_t layout_of(const Shape& shape, const Shape& strides, bool unaligned) {
  uint16_t bits = unaligned ? PLUGRAD_UNALIGNED : 0;
  int64_t dense = 1;
  for (size_t axis = shape.size(); axis-- > 0; dense *= shape[axis]) {
    if (shape[axis] == 1) continue;
    if (strides[axis] != dense) bits |= PLUGRAD_STRIDED;
    if (strides[axis] == 0) bits |= PLUGRAD_BROADCAST;
    if (strides[axis] < 0) bits |= PLUGRAD_NEGATIVE;
  }
  return bits;
}

namespace {
uint64_t immediate_bits(const Array& array, bool perturbed) {
  const long double value = array.get(0);
  if (!is_floating(array.dtype())) return static_cast<uint64_t>(static_cast<int64_t>(value));
  // A perturbed immediate is a double that rounds to the same float, so that the kernel has to round.
  const double given =
      array.dtype() == PLUGRAD_F32 && perturbed ? static_cast<double>(value) * (1 + 1e-9) : static_cast<double>(value);
  return __builtin_bit_cast(uint64_t, given);
}

plugrad_view blank_view(const Array& array, uint16_t layout) {
  plugrad_view view{};
  view.count = array.count();
  view.dtype = array.dtype();
  view.layout = layout;
  for (int i = 0; i < PLUGRAD_MAX_RANK; ++i) view.shape[i] = view.strides[i] = 0x5A5A5A5A5A;  // unspecified beyond rank
  return view;
}

// Repeats a scalar's value in every element of a shape.
Array expanded(const Array& scalar, const Shape& shape) {
  Array array(scalar.dtype(), shape);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, scalar.get(0));
  return array;
}

bool is_scalar(const OpRow& row, int input) { return row.op().scalar_inputs() >> input & 1; }

}  // namespace

Trial laid_out(const OpRow& row, const Question& question, const Problem& problem, const Arrangement& arrangement,
               uint64_t alignment) {
  Trial trial{problem, arrangement, {}, {}, 0, {}, {}, 0, 0, {}};
  const int outputs = question.op->outputs, operands = outputs + question.op->inputs;
  for (int k = 0; k < operands; ++k) {
    Placement& placement = trial.arrangement.operands[k];
    Array& array = k < outputs ? trial.problem.outputs[k] : trial.problem.inputs[k - outputs];
    if (placement.form == Form::immediate) {
      array = seen_through(array, placement.form);
      trial.strides.emplace_back(array.shape().size(), 0);
      trial.layouts.push_back(PLUGRAD_IMMEDIATE);
      trial.layout |= PLUGRAD_IMMEDIATE;
      continue;
    }
    if (is_broadcast(placement.form) && k >= outputs && is_scalar(row, k - outputs)) {
      array = expanded(array, problem.outputs[0].shape());
      placement.form = Form::broadcast_all;
    }
    array = seen_through(array, placement.form);
    placement.unaligned = placement.unaligned && element_size(array.dtype()) % alignment != 0;
    trial.strides.push_back(strides_of(array.shape(), placement.form));
    trial.layouts.push_back(layout_of(array.shape(), trial.strides.back(), placement.unaligned));
    trial.layout |= trial.layouts.back();
  }
  if (arrangement.in_place >= 0) trial.problem.outputs[0] = trial.problem.inputs[arrangement.in_place];
  return trial;
}

Batch::Batch(Device& device, Queue& queue, const OpRow& row, const Question& question, const plugrad_kernel* kernel)
    : device_(device), queue_(queue), row_(row), question_(question), kernel_(kernel), outputs_(device.info().alignment),
      inputs_(device.info().alignment), workspaces_(device.info().alignment) {}

Batch::~Batch() {
  try {
    device_.sync(queue_);
  } catch (const Breach&) {  // submit's caller has already caught this Breach
  }
}

void Batch::add(Trial trial) {
  trials_.push_back(std::move(trial));
  place(trials_.back(), static_cast<int>(trials_.size()) - 1);
}

void Batch::place(Trial& trial, int index) {
  const int outputs = question_.op->outputs, operands = outputs + question_.op->inputs;
  for (int k = 0; k < operands; ++k) {
    const Array& array = trial.operand(k);
    const Placement placement = trial.arrangement.operands[k];
    plugrad_view view = blank_view(array, trial.layouts[k]);
    if (placement.form == Form::immediate) {
      view.count = 1;
      view.offset = immediate_bits(array, question_.op->opcode != PLUGRAD_OP_IOTA);
    } else if (k - outputs == trial.arrangement.in_place && k >= outputs) {
      view = trial.views[0];
    } else {
      Image& image = k < outputs ? outputs_ : inputs_;
      view.offset = image.place(array, trial.strides[k], placement.unaligned, k < outputs, index);
      view.rank = static_cast<uint8_t>(array.shape().size());
      for (size_t axis = 0; axis < array.shape().size(); ++axis) {
        view.shape[axis] = array.shape()[axis];
        view.strides[axis] = array.shape()[axis] == 1 ? 77777 : trial.strides[k][axis];  // unspecified in extents of 1
      }
    }
    trial.views.push_back(view);
  }
}

plugrad_op Batch::op_of(const Trial& trial) const {
  plugrad_op op{};
  op.struct_size = sizeof op;
  op.opcode = question_.op->opcode;
  op.views = trial.pointers.data();
  op.attributes = trial.problem.attributes.empty() ? nullptr : trial.problem.attributes.data();
  op.outputs = question_.op->outputs;
  op.inputs = question_.op->inputs;
  op.flags = question_.flags;
  return op;
}

void Batch::prepare() {
  if (prepared_) return;
  prepared_ = true;
  const int outputs = question_.op->outputs;
  for (int t = 0; t < static_cast<int>(trials_.size()); ++t) {
    Trial& trial = trials_[t];
    for (size_t k = 0; k < trial.views.size(); ++k) {
      const bool in_outputs = static_cast<int>(k) < outputs || static_cast<int>(k) - outputs == trial.arrangement.in_place;
      if (!(trial.views[k].layout & PLUGRAD_IMMEDIATE)) trial.views[k].buffer = (in_outputs ? outputs_ : inputs_).buffer();
      trial.pointers.push_back(&trial.views[k]);
    }
    if (!kernel_->workspace) continue;
    const plugrad_op op = op_of(trial);
    trial.workspace_bytes = kernel_->workspace(kernel_, &op);
    if (trial.workspace_bytes) trial.workspace_offset = workspaces_.reserve(trial.workspace_bytes, t);
  }
}

void Batch::submit(Trial& trial) {
  plugrad_op op = op_of(trial);
  if (trial.workspace_bytes) {
    op.workspace = workspaces_.buffer();
    op.workspace_offset = trial.workspace_offset;
    op.workspace_bytes = trial.workspace_bytes;
  }
  std::vector<plugrad_view> views = trial.views;  // a copy: overwritten below, since run must keep no pointer
  std::vector<const plugrad_view*> pointers;
  for (const plugrad_view& view : views) pointers.push_back(&view);
  std::vector<std::byte> attributes = trial.problem.attributes;
  op.views = pointers.data();
  op.attributes = attributes.empty() ? nullptr : attributes.data();
  const std::vector<plugrad_view> given = views;
  trial.outcome = device_.run(queue_, kernel_, op);
  const auto same = [](const plugrad_view& a, const plugrad_view& b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  trial.changed = !std::ranges::equal(views, given, same) || attributes != trial.problem.attributes;
  std::fill(views.begin(), views.end(), plugrad_view{});
  std::fill(attributes.begin(), attributes.end(), std::byte{0xEE});
}

Outcome Batch::run(plugrad_failure* failure) {
  outputs_.upload(device_, queue_);
  inputs_.upload(device_, queue_);
  prepare();
  workspaces_.upload(device_, queue_);
  for (Trial& trial : trials_) submit(trial);
  const Outcome outcome = device_.sync(queue_, failure);
  outputs_.download(device_, queue_);
  inputs_.download(device_, queue_);
  workspaces_.download(device_, queue_);
  return outcome;
}

double Batch::seconds_of_a_call() {
  using Clock = std::chrono::steady_clock;
  constexpr double kRound = 0.02;
  constexpr int kRounds = 5;
  if (const Outcome first = run(); !first.ok() || !trials_[0].outcome.ok())
    throw Breach("run returned " + (first.ok() ? trials_[0].outcome : first).text());
  plugrad_op op = op_of(trials_[0]);
  if (trials_[0].workspace_bytes) {
    op.workspace = workspaces_.buffer();
    op.workspace_offset = trials_[0].workspace_offset;
    op.workspace_bytes = trials_[0].workspace_bytes;
  }
  const auto seconds_of = [&](int calls) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i) device_.run(queue_, kernel_, op);
    if (const Outcome last = device_.sync(queue_); !last.ok()) throw Breach("sync returned " + last.text());
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  int calls = 1;
  while (calls < 1 << 20 && seconds_of(calls) < kRound) calls *= 2;
  double best = seconds_of(calls);
  for (int round = 1; round < kRounds; ++round) best = std::min(best, seconds_of(calls));
  return best / calls;
}

std::vector<Array> Batch::results(const Trial& trial) const {
  std::vector<Array> results = trial.problem.outputs;
  for (size_t k = 0; k < results.size(); ++k) outputs_.gather(trial.views[k].offset, trial.strides[k], results[k]);
  return results;
}

}  // namespace plugrad::conformance
