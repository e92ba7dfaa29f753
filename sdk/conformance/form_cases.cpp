// The extension of forms.h: a call that reads a form has the bits of the call that reads the operand.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/session.hpp>
#include <sdk/conformance/trial.hpp>

#include <plugrad/sdk/forms.h>

#include <optional>

namespace plugrad::conformance {
namespace {

const plugrad_forms* offered_forms(const Session& session) {
  const plugrad_backend& table = *session.plugin.table;
  return table.get_extension ? static_cast<const plugrad_forms*>(table.get_extension(PLUGRAD_FORMS)) : nullptr;
}

void check_forms_table(Session& session, Tally& tally) {
  const plugrad_forms* const offered = offered_forms(session);
  if (!offered) return tally.skip(std::string("the plugin does not offer ") + PLUGRAD_FORMS);
  tally.check(offered == offered_forms(session), "get_extension returns a different table on a second call");
  tally.check(offered->struct_size >= sizeof *offered, "struct_size is too small");
  tally.check(!(offered->flags & ~PLUGRAD_CHANNELS_LAST), "flags has bits that this revision does not define");
}

// A dense problem, with a block of memory for each operand.
class FormTrial {
 public:
  FormTrial(Session& session, Queue& queue, const Question& question, const Problem& problem)
      : session_(session), queue_(queue), question_(question), problem_(problem) {
    for (const std::vector<Array>* arrays : {&problem.outputs, &problem.inputs})
      for (const Array& each : *arrays) {
        Block& block = *blocks_.emplace_back(std::make_unique<Block>(session.device, each.bytes().size()));
        session.device.upload(queue, block.buffer(), 0, each.bytes().data(), each.bytes().size());
        plugrad_view& view = views_.emplace_back();
        view.count = each.count();
        view.dtype = each.dtype();
        view.rank = static_cast<uint8_t>(each.shape().size());
        const Shape strides = row_major(each.shape());
        std::copy(each.shape().begin(), each.shape().end(), view.shape);
        std::copy(strides.begin(), strides.end(), view.strides);
      }
  }

  // The form as the plugin describes it, without the operands' memory.
  std::optional<plugrad_form> find(const plugrad_forms& offered, const plugrad_kernel* kernel, uint32_t input) {
    plugrad_form form{};
    form.struct_size = sizeof form;
    const plugrad_op op = op_of();
    return offered.find(session_.device.handle(), kernel, &op, input, &form) ? std::optional(form) : std::nullopt;
  }

  // Runs a kernel of the op. Returns the outputs' bytes, or nothing if the kernel declined. form: instead of an input.
  std::optional<std::vector<std::byte>> run(const plugrad_kernel* kernel, uint32_t input = 0, const Block* form = nullptr) {
    set_buffers();
    if (form) views_[question_.op->outputs + input].buffer = form->buffer();
    const Outcome outcome = submit(kernel, op_of());
    if (outcome.status == PLUGRAD_UNSUPPORTED) return {};
    if (!outcome.ok()) throw Breach("run returned " + outcome.text());
    std::vector<std::byte> all;
    for (int i = 0; i < question_.op->outputs; ++i) {
      std::vector<std::byte> bytes(problem_.outputs[i].bytes().size());
      session_.device.download(queue_, bytes.data(), blocks_[i]->buffer(), 0, bytes.size());
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }
  void make(const plugrad_form& form, uint32_t input, const Block& to) {
    set_buffers();
    plugrad_view whole{};
    whole.buffer = to.buffer();
    whole.count = whole.shape[0] = static_cast<int64_t>(form.bytes);
    whole.strides[0] = whole.rank = 1;
    whole.dtype = PLUGRAD_U8;
    const plugrad_view* const views[] = {&whole, &views_[question_.op->outputs + input]};
    plugrad_op op = op_of();
    op.views = views;
    op.outputs = op.inputs = 1;
    const Outcome outcome = session_.device.run(queue_, form.maker, op);
    if (!outcome.ok()) throw Breach("the maker's run returned " + outcome.text());
  }

 private:
  plugrad_op op_of() {
    pointers_.clear();
    for (const plugrad_view& each : views_) pointers_.push_back(&each);
    plugrad_op op{};
    op.struct_size = sizeof op;
    op.opcode = question_.op->opcode;
    op.views = pointers_.data();
    op.attributes = problem_.attributes.empty() ? nullptr : problem_.attributes.data();
    op.outputs = question_.op->outputs;
    op.inputs = question_.op->inputs;
    return op;
  }
  void set_buffers() {
    for (size_t i = 0; i < views_.size(); ++i) views_[i].buffer = blocks_[i]->buffer();
  }
  Outcome submit(const plugrad_kernel* kernel, plugrad_op op) {
    const uint64_t bytes = kernel->workspace ? kernel->workspace(kernel, &op) : 0;
    std::optional<Block> workspace;
    if (bytes) {
      workspace.emplace(session_.device, bytes);
      op.workspace = workspace->buffer();
      op.workspace_bytes = bytes;
    }
    const Outcome outcome = session_.device.run(queue_, kernel, op);
    session_.device.sync(queue_);
    return outcome;
  }

  Session& session_;
  Queue& queue_;
  const Question& question_;
  const Problem& problem_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<plugrad_view> views_;
  std::vector<const plugrad_view*> pointers_;
};

// Checks every form of the inputs of a problem. Returns how many there are.
int check_forms_of(Session& session, Tally& tally, Queue& queue, const Question& question, const Problem& problem) {
  const plugrad_forms& offered = *offered_forms(session);
  const plugrad_kernel* const kernel = resolve(session.device.table(), session.device.handle(), question, 0);
  FormTrial trial(session, queue, question, problem);
  int forms = 0;
  for (uint32_t input = 0; input < question.op->inputs; ++input) {
    const std::optional<plugrad_form> form = trial.find(offered, kernel, input);
    if (!form) continue;
    const std::string title = text_of(question) + ", input " + std::to_string(input) + ": ";
    if (!tally.check(form->bytes && form->maker && form->reader, title + "the form lacks its bytes or a kernel")) continue;
    ++forms;
    const auto expected = trial.run(kernel);
    if (!expected) continue;
    const Block made(session.device, form->bytes);
    trial.make(*form, input, made);
    const auto found = trial.run(form->reader, input, &made);
    tally.check(found == expected, title + "the reader's results do not have the bits of the kernel's results");
  }
  return forms;
}

void check_forms(Session& session, Tally& tally) {
  const plugrad_forms* const offered = offered_forms(session);
  if (!offered || !offered->find) return tally.skip("the plugin offers no forms of operands");
  Queue queue = session.device.make_queue();
  Random random(session.settings.seed);
  int forms = 0;
  for (const OpRow& row : kOpRows)
    for (const uint8_t dtype : {PLUGRAD_F32, PLUGRAD_F64, PLUGRAD_F16, PLUGRAD_BF16}) {
      if (!row.op().is_for(dtype) || row.only_immediates()) continue;
      const Question question = question_for(row.opcode, dtype);
      if (!claimed(session, question)) continue;
      note_running("forms.results of " + text_of(question));
      for (const Problem& problem : row.problems(question, random))
        forms += check_forms_of(session, tally, queue, question, problem);
    }
  if (!forms) tally.skip("find returns no form for the problems of the ops");
}

}  // namespace

std::vector<Case> form_cases() { return {{"forms.table", check_forms_table}, {"forms.results", check_forms}}; }

}  // namespace plugrad::conformance
