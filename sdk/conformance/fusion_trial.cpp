#include <sdk/conformance/fusion_trial.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::conformance {
namespace {

constexpr uint64_t kGuard = 4096;  // bytes around an array that must stay unchanged; a multiple of every alignment

plugrad_view dense_view(const Array& array) {
  plugrad_view v{};
  v.dtype = array.dtype();
  v.rank = static_cast<uint8_t>(array.shape().size());
  v.count = array.count();
  const Shape strides = row_major(array.shape());
  std::ranges::copy(array.shape(), v.shape);
  std::ranges::copy(strides, v.strides);
  return v;
}

plugrad_view immediate_view(const Array& number) {
  plugrad_view v{};
  v.dtype = number.dtype();
  v.count = 1;
  v.layout = PLUGRAD_IMMEDIATE;
  v.offset = is_floating(v.dtype) ? std::bit_cast<uint64_t>(static_cast<double>(number.get(0)))
                                  : static_cast<uint64_t>(number.integer(0));
  return v;
}

// An array in device memory, between guards.
class FusionMemory {
 public:
  FusionMemory(Session& session, Queue& queue, const Array& array)
      : session_(session), queue_(queue), array_(array), block_(session.device, 2 * kGuard + array.bytes().size()) {
    std::vector<std::byte> all(block_.bytes(), std::byte{0xA5});
    std::ranges::copy(array.bytes(), all.begin() + kGuard);
    session.device.upload(queue, block_.buffer(), 0, all.data(), all.size());
  }
  void point(plugrad_view& view) const {
    view.buffer = block_.buffer();
    view.offset = kGuard;
  }
  // Returns the current contents, and whether the guards are unchanged.
  std::pair<Array, bool> now() const {
    std::vector<std::byte> all(block_.bytes());
    session_.device.download(queue_, all.data(), block_.buffer(), 0, all.size());
    Array found = array_;
    std::copy_n(all.begin() + kGuard, array_.bytes().size(), found.element(0));
    const auto is_guard = [](std::byte b) { return b == std::byte{0xA5}; };
    const bool kept =
        std::all_of(all.begin(), all.begin() + kGuard, is_guard) && std::all_of(all.end() - kGuard, all.end(), is_guard);
    return {std::move(found), kept};
  }

 private:
  Session& session_;
  Queue& queue_;
  const Array& array_;
  Block block_;
};

// Returns the array repeated to the extents of a shape.
Array expanded(const Array& from, const Shape& shape) {
  Array made(from.dtype(), shape);
  Shape strides = row_major(from.shape());
  if (from.count() == 1) strides.assign(shape.size(), 0);
  for (size_t d = 0; d < strides.size() && from.count() > 1; ++d)
    if (from.shape()[d] == 1) strides[d] = 0;
  const auto size = static_cast<size_t>(element_size(from.dtype()));
  Walk walk(shape);
  for (int64_t i = 0; i < made.count(); ++i, walk.next())
    std::memcpy(made.element(i), from.element(dot(walk.index(), strides)), size);
  return made;
}

// Returns the array with its last two axes exchanged.
Array turned(const Array& from) {
  Shape shape = from.shape();
  const size_t last = shape.size() - 1;
  std::swap(shape[last], shape[last - 1]);
  Array made(from.dtype(), shape);
  Shape strides = row_major(from.shape());
  std::swap(strides[last], strides[last - 1]);
  const auto size = static_cast<size_t>(element_size(from.dtype()));
  Walk walk(shape);
  for (int64_t i = 0; i < made.count(); ++i, walk.next())
    std::memcpy(made.element(i), from.element(dot(walk.index(), strides)), size);
  return made;
}
// Returns the view of an array of which `memory` is turned.
plugrad_view turned_view(const Array& memory) {
  plugrad_view v = dense_view(memory);
  std::swap(v.shape[v.rank - 1], v.shape[v.rank - 2]);
  std::swap(v.strides[v.rank - 1], v.strides[v.rank - 2]);
  v.layout = PLUGRAD_STRIDED;
  return v;
}

// Runs an op on dense operands and immediates, and returns its outputs.
class Singly {
 public:
  Singly(Session& session, Queue& queue) : session_(session), queue_(queue) {}

  // The values of all results, by the device's own kernels.
  std::vector<Array> values_of(const FusionProblem& problem) {
    std::vector<Array> values = problem.inputs;
    for (const FusionParts::Line& line : problem.parts.lines) {
      const OpInfo& op = *op_info(line.opcode);
      if (head_content(op.opcode)) {
        add_results_of_head(problem, line, values);
        continue;
      }
      const bool updates = op.shape == OpShape::update;
      const size_t first = values.size();
      const Shape domain = problem.shape_of_value(op.shape == OpShape::reduction ? line.arguments[0] : first);
      std::vector<Array> outputs, inputs;
      for (size_t k = 0; k < line.results; ++k) {
        outputs.emplace_back(problem.parts.values[first + k].dtype, problem.shape_of_value(first + k));
        if (updates) outputs.back() = values[line.arguments[k]];
      }
      std::vector<bool> numbers;
      for (size_t k = updates ? line.results : 0; k < line.arguments.size(); ++k) {
        const uint16_t v = line.arguments[k];
        const bool is_scalar = updates && k > line.results;
        numbers.push_back(v < problem.inputs.size() && problem.is_immediate[v]);
        inputs.push_back(numbers.back() ? values[v] : expanded(values[v], is_scalar ? Shape(domain.size(), 1) : domain));
      }
      run(line, outputs, inputs, numbers);
      for (Array& each : outputs) values.push_back(std::move(each));
    }
    return values;
  }

 private:
  void add_results_of_head(const FusionProblem& problem, const FusionParts::Line& line, std::vector<Array>& values) {
    std::vector<Array> outputs;
    for (size_t k = 0; k < problem.head_results.size(); ++k)
      outputs.emplace_back(problem.parts.values[problem.parts.inputs + k].dtype, problem.head_results[k]);
    std::vector<Array> inputs(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(problem.head_inputs()));
    turned_ = problem.is_turned;
    run(line, outputs, inputs, std::vector<bool>(inputs.size()));
    turned_.clear();
    Array first(outputs[0].dtype(), problem.space);
    std::ranges::copy(outputs[0].bytes(), first.element(0));
    outputs[0] = std::move(first);
    for (Array& each : outputs) values.push_back(std::move(each));
  }

  void run(const FusionParts::Line& line, std::vector<Array>& outputs, std::vector<Array>& inputs,
           std::vector<bool> numbers) {
    Question question{op_info(line.opcode), {}, 0};
    for (const Array& each : outputs) question.dtypes.push_back(each.dtype());
    for (const Array& each : inputs) question.dtypes.push_back(each.dtype());
    const bool some = std::ranges::find(numbers, true) != numbers.end();
    const auto kernel_for = [&](uint16_t layout) {
      return resolve(session_.device.table(), session_.device.handle(), question, layout);
    };
    const bool strided = std::ranges::find(turned_, true) != turned_.end();
    const plugrad_kernel* kernel = kernel_for(some ? PLUGRAD_IMMEDIATE : strided ? PLUGRAD_STRIDED : 0);
    if (!kernel && some) {
      for (size_t k = 0; k < inputs.size(); ++k)
        if (numbers[k]) inputs[k] = expanded(inputs[k], outputs[0].shape());
      numbers.assign(numbers.size(), false);
      kernel = kernel_for(0);
    }
    if (!kernel) throw Breach(std::string("there is a fusion with ") + question.op->name + ", but no kernel for it");
    submit(kernel, line, outputs, inputs, numbers);
  }

  void submit(const plugrad_kernel* kernel, const FusionParts::Line& line, std::vector<Array>& outputs,
              const std::vector<Array>& inputs, const std::vector<bool>& numbers) {
    std::vector<plugrad_view> views;
    std::vector<std::unique_ptr<FusionMemory>> placed;
    const auto place = [&](const Array& array, const plugrad_view& view) {
      placed.push_back(std::make_unique<FusionMemory>(session_, queue_, array));
      views.push_back(view);
      placed.back()->point(views.back());
    };
    const std::vector<Array> before = outputs;
    std::list<Array> memories;
    for (const Array& each : before) place(each, dense_view(each));
    for (size_t k = 0; k < inputs.size(); ++k) {
      const bool is_turned = k < turned_.size() && turned_[k];
      if (is_turned) memories.push_back(turned(inputs[k]));
      if (numbers[k]) views.push_back(immediate_view(inputs[k]));
      else if (is_turned) place(memories.back(), turned_view(memories.back()));
      else place(inputs[k], dense_view(inputs[k]));
    }
    std::vector<const plugrad_view*> pointers;
    for (const plugrad_view& each : views) pointers.push_back(&each);
    plugrad_op op{};
    op.struct_size = sizeof op;
    op.opcode = line.opcode;
    op.views = pointers.data();
    op.attributes = line.attributes.empty() ? nullptr : line.attributes.data();
    op.outputs = static_cast<uint16_t>(outputs.size());
    op.inputs = static_cast<uint16_t>(inputs.size());
    std::optional<Block> workspace;
    give_workspace(session_, kernel, op, workspace);
    const Outcome outcome = session_.device.run(queue_, kernel, op);
    if (!outcome.ok()) throw Breach(std::string(op_info(line.opcode)->name) + " returned " + outcome.text());
    for (size_t k = 0; k < outputs.size(); ++k) outputs[k] = placed[k]->now().first;
  }

 public:
  static void give_workspace(Session& session, const plugrad_kernel* kernel, plugrad_op& op, std::optional<Block>& block) {
    op.workspace_bytes = kernel->workspace ? kernel->workspace(kernel, &op) : 0;
    if (op.workspace_bytes == UINT64_MAX) throw Breach("workspace found no host memory");
    if (!op.workspace_bytes) return;
    block.emplace(session.device, op.workspace_bytes);
    op.workspace = block->buffer();
  }

 private:
  Session& session_;
  Queue& queue_;
  std::vector<bool> turned_;  // which inputs of the current op are transposed in memory
};

// Equal bits; a NaN may be any NaN.
bool same_element(const Array& a, const Array& b, int64_t i) {
  const auto size = static_cast<size_t>(element_size(a.dtype()));
  if (!std::memcmp(a.element(i), b.element(i), size)) return true;
  return is_floating(a.dtype()) && std::isnan(a.get(i)) && std::isnan(b.get(i));
}

class FusionTrial {
 public:
  FusionTrial(Session& session, Queue& queue, const FusionProblem& problem)
      : session_(session), queue_(queue), problem_(problem), block_(packed(problem.parts)) {}

  // Returns the device's kernel for the fusion, or null.
  const plugrad_kernel* kernel(Tally& tally) const {
    if (const std::string flaw = flaw_of(fusion()); !flaw.empty()) throw Breach("the test's own fusion is wrong: " + flaw);
    begin_call();
    const plugrad_kernel* const found = fusions_offered_by(session_)->kernel(session_.device.handle(), &fusion());
    tally.check(!thread_reports().count, "kernel reported an error about a fusion; it must not report");
    return found;
  }

  // Returns whether the fusion ran.
  bool run(Tally& tally, const plugrad_kernel* kernel) {
    lay_out();
    const auto outputs = static_cast<uint16_t>(problem_.parts.outputs.size());
    plugrad_op op{sizeof op, PLUGRAD_FUSION, 0, pointers_.data(), &fusion(), outputs, problem_.parts.inputs, 0, nullptr, 0,
                  0};
    if (const std::string flaw = flaw_of(Fusion(fusion()), op); !flaw.empty())
      throw Breach("the test's own operands are wrong: " + flaw);
    std::optional<Block> workspace;
    Singly::give_workspace(session_, kernel, op, workspace);
    const Outcome outcome = session_.device.run(queue_, kernel, op);
    const bool ran = outcome.ok();
    if (!ran && outcome.status != PLUGRAD_UNSUPPORTED) tally.fail(text_of(problem_) + ": run returned " + outcome.text());
    compare(tally, ran ? Singly(session_, queue_).values_of(problem_) : std::vector<Array>());
    return ran;
  }

 private:
  const plugrad_fusion& fusion() const { return *reinterpret_cast<const plugrad_fusion*>(block_.data()); }

  void lay_out() {
    const FusionParts& parts = problem_.parts;
    for (size_t i = 0; i < parts.inputs; ++i) {
      const Array& input = problem_.inputs[i];
      memories_.push_back(is_turned(i) ? turned(input) : input);
    }
    for (size_t i = 0; i < parts.inputs; ++i) {
      if (!problem_.is_immediate[i]) inputs_.push_back(std::make_unique<FusionMemory>(session_, queue_, memories_[i]));
      else inputs_.push_back(nullptr);
    }
    blank_.reserve(parts.outputs.size());
    for (const plugrad_fusion_output& each : parts.outputs) {
      blank_.emplace_back(parts.values[each.value].dtype, problem_.shape_of_value(each.value));
      const bool is_over = each.over != PLUGRAD_FUSION_NONE;
      if (!is_over) outputs_.push_back(std::make_unique<FusionMemory>(session_, queue_, blank_.back()));
      else outputs_.push_back(nullptr);
      views_.push_back(dense_view(blank_.back()));
      (is_over ? inputs_[each.over] : outputs_.back())->point(views_.back());
    }
    for (size_t i = 0; i < parts.inputs; ++i) {
      views_.push_back(problem_.is_immediate[i] ? immediate_view(problem_.inputs[i]) : input_view(i));
    }
    for (const plugrad_view& each : views_) pointers_.push_back(&each);
  }

  bool is_turned(size_t i) const { return i < problem_.head_inputs() && problem_.is_turned[i]; }

  plugrad_view input_view(size_t i) const {
    plugrad_view v = is_turned(i) ? turned_view(memories_[i]) : dense_view(memories_[i]);
    if (i < problem_.head_inputs()) {
      inputs_[i]->point(v);
      return v;
    }
    v.count = count_of(problem_.space);
    for (size_t d = 0; d < problem_.space.size(); ++d) {
      if (!(problem_.parts.values[i].axes >> d & 1)) continue;
      v.shape[d] = problem_.space[d];
      v.strides[d] = 0;
      v.layout |= PLUGRAD_STRIDED | PLUGRAD_BROADCAST;
    }
    inputs_[i]->point(v);
    return v;
  }

  // values: the expected values of the fusion; empty if nothing may have been written.
  void compare(Tally& tally, const std::vector<Array>& values) const {
    const FusionParts& parts = problem_.parts;
    std::vector<bool> is_written(parts.inputs);
    for (size_t k = 0; k < parts.outputs.size(); ++k) {
      const auto [value, over] = parts.outputs[k];
      if (over != PLUGRAD_FUSION_NONE) is_written[over] = true;
      const FusionMemory& place = over == PLUGRAD_FUSION_NONE ? *outputs_[k] : *inputs_[over];
      const Array& before = over == PLUGRAD_FUSION_NONE ? blank_[k] : memories_[over];
      expect(tally, place, values.empty() ? before : values[value],
             "output " + std::to_string(k) + ", value " + std::to_string(value) + ",");
    }
    for (size_t i = 0; i < parts.inputs; ++i)
      if (inputs_[i] && !is_written[i]) expect(tally, *inputs_[i], memories_[i], "input " + std::to_string(i));
  }

  void expect(Tally& tally, const FusionMemory& place, const Array& expected, const std::string& which) const {
    const auto [found, kept] = place.now();
    tally.check(kept, text_of(problem_) + ": wrote around " + which);
    for (int64_t i = 0; i < expected.count(); ++i) {
      if (same_element(found, expected, i)) continue;
      tally.fail(text_of(problem_) + ": element " + std::to_string(i) + " of " + which + " is " +
                 text_of(found.dtype(), found.get(i)) + ", and " + text_of(expected.dtype(), expected.get(i)) +
                 " by the kernels of the single ops");
      return;
    }
    tally.check(true, "");
  }

  Session& session_;
  Queue& queue_;
  const FusionProblem& problem_;
  const std::vector<uint64_t> block_;
  std::vector<std::unique_ptr<FusionMemory>> inputs_, outputs_;
  std::vector<Array> memories_;  // of the inputs
  std::vector<Array> blank_;
  std::vector<plugrad_view> views_;
  std::vector<const plugrad_view*> pointers_;
};

}  // namespace

const plugrad_fusions* fusions_offered_by(const Session& session) {
  const plugrad_backend& table = *session.plugin.table;
  return table.get_extension ? static_cast<const plugrad_fusions*>(table.get_extension(PLUGRAD_FUSIONS)) : nullptr;
}

const plugrad_kernel* kernel_of(Session& session, const FusionProblem& problem, Tally& tally) {
  Queue queue = session.device.make_queue();
  return FusionTrial(session, queue, problem).kernel(tally);
}

bool runs_fusion(Session& session, Queue& queue, const FusionProblem& problem, const plugrad_kernel* kernel, Tally& tally) {
  return FusionTrial(session, queue, problem).run(tally, kernel);
}

}  // namespace plugrad::conformance
