// The matrix: every op claimed by the plugin, in every dtype and every class of layouts.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/session.hpp>
#include <sdk/conformance/trial.hpp>

#include <algorithm>
#include <ostream>
#include <utility>

namespace plugrad::conformance {
namespace {

constexpr auto kAll = [] {
  std::array<uint8_t, std::size(kDTypes)> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = kDTypes[i].dtype;
  return all;
}();

// Returns a question for each combination of an op's dtypes, with these dtypes for its free letters.
std::vector<Question> questions(const OpInfo& op, std::span<const uint8_t> first, std::span<const uint8_t> second) {
  std::vector<Question> list;
  const std::string letters = op.operands;
  for (const uint8_t dtype : first) {
    if (!op.is_for(dtype)) continue;
    if (letters.find('D') == letters.npos) {
      list.push_back(question_for(op.opcode, dtype));
      continue;
    }
    for (const uint8_t source : second)
      if (source != dtype) list.push_back({&op, {dtype, source}, 0});
  }
  return list;
}

// Returns the possible flags of a question; the first is 0, without flags.
std::vector<uint32_t> flags_of(const Question& question) {
  std::vector<uint32_t> list = {0};
  if (question.op->outputs == 1 && question.out() != PLUGRAD_BOOL && !question.op->is_in_out(0))
    list.push_back(PLUGRAD_ACCUMULATE);
  if (question.op->opcode == PLUGRAD_OP_MATMUL && question.out() == PLUGRAD_F32) list.push_back(PLUGRAD_TF32);
  return list;
}

bool is_class(uint16_t layout) {
  const bool implies = layout & (PLUGRAD_BROADCAST | PLUGRAD_NEGATIVE);
  return !implies || (layout & PLUGRAD_STRIDED);
}

std::string class_text(uint16_t layout) {
  constexpr const char* kBits[] = {"STRIDED", "BROADCAST", "NEGATIVE", "UNALIGNED", "WIDE_INDEX", "IMMEDIATE"};
  std::string text;
  for (int bit = 0; bit < 6; ++bit)
    if (layout >> bit & 1) text += (text.empty() ? "" : "|") + std::string(kBits[bit]);
  return text.empty() ? "DENSE" : text;
}

// A device that serves a class must serve every subset of the class. FILL, COPY and CAST must serve every class. resolve
// must always return the same kernel for a question.
void check_answers(const Session& session, Tally& tally, const Question& question) {
  const auto answer = [&](uint16_t layout) {
    return resolve(session.device.table(), session.device.handle(), question, layout);
  };
  const bool every_class = question.op->serves_every_layout() && !question.flags;
  for (uint16_t layout = 0; layout <= PLUGRAD_ALL_LAYOUTS; ++layout) {
    if (!is_class(layout)) continue;
    const plugrad_kernel* kernel = answer(layout);
    if (every_class)
      tally.check(kernel, text_of(question) + ": resolve declines the class " + class_text(layout) +
                              "; FILL, COPY and CAST must serve every class");
    if (!kernel) continue;
    tally.check(kernel == answer(layout), text_of(question) + ": resolve returns a different kernel when asked again");
    tally.check(kernel->struct_size >= sizeof(plugrad_kernel) && !kernel->reserved && kernel->run,
                text_of(question) + ": a kernel has struct_size " + std::to_string(kernel->struct_size) + ", reserved " +
                    std::to_string(kernel->reserved) + " or no run function");
    for (int bit = 0; bit < 6; ++bit) {
      const uint16_t subset = layout & ~(1u << bit);
      if (subset != layout && is_class(subset))
        tally.check(answer(subset), text_of(question) + ": resolve serves " + class_text(layout) +
                                        " but declines its subset " + class_text(subset));
    }
  }
}

std::vector<Trial> trials_of(const Session& session, const Question& question, Column column) {
  const OpRow& row = row_of(question.op->opcode);
  uint64_t seed = session.settings.seed;
  for (const uint64_t part : {uint64_t{question.op->opcode}, static_cast<uint64_t>(question.flags),
                              static_cast<uint64_t>(column), uint64_t{question.out()}, uint64_t{question.dtypes.back()}})
    seed = seed * 0x9E3779B97F4A7C15u + part;
  Random random(seed);
  const uint16_t always = row.only_immediates() ? PLUGRAD_IMMEDIATE : 0;
  const uint16_t wanted = column_bits(column) | always;
  // Large problems test kernels that split their work. It suffices to test their further layouts for a single dtype.
  const bool large_too = column <= Column::strided || question.dtypes.back() == PLUGRAD_F32;
  std::vector<Trial> list;
  for (Problem& problem : row.problems(question, random)) {
    if (question.accumulates())
      problem.outputs[0] = random_array(question.out(), problem.outputs[0].shape(), {-2, 2}, random);
    for (const Arrangement& arrangement : arrangements(column, row, question, random)) {
      if (problem.large && (!arrangement.for_large || !large_too)) continue;
      Trial trial = laid_out(row, question, problem, arrangement, session.device.info().alignment);
      if (column == Column::mixed || trial.layout == wanted) list.push_back(std::move(trial));
    }
  }
  return list;
}

void check_op(Session& session, Tally& tally, const OpInfo& op) {
  Queue queue = session.queue ? *std::exchange(session.queue, std::nullopt) : session.device.make_queue();
  for (const Question& plain : questions(op, kAll, kAll)) {
    const bool wanted = session.settings.dtypes.empty() || std::ranges::any_of(plain.dtypes, [&](uint8_t dtype) {
                          return std::ranges::count(session.settings.dtypes, dtype) > 0;
                        });
    if (!wanted) continue;
    for (const uint32_t flags : flags_of(plain)) {
      Question question = plain;
      question.flags = flags;
      if (!claimed(session, question)) continue;
      check_answers(session, tally, question);
      MatrixRow row{question};
      for (int column = 0; column < kColumns; ++column) {
        note_running("op." + text_of(question) + " [" + kColumnNames[column] + "]");
        Tally found(session.settings.verbose ? 1000 : 3);
        row.cells[column] = check_cell(session, found, question, static_cast<Column>(column), queue);
        tally.absorb(found);
      }
      for (int column = 0; column < kColumns; ++column)
        if (row.cells[column] == Cell::blank)
          tally.fail(text_of(question) + ": there is no case for the class " + kColumnNames[column] +
                     " although the plugin serves it");
      session.matrix.push_back(std::move(row));
    }
  }
  if (!tally.failures()) session.queue = queue;
}

}  // namespace

Question question_for(uint32_t opcode, uint8_t dtype, uint32_t flags) {
  Question question{op_info(opcode), {}, flags};
  for (int i = 0; i < question.op->operand_count(); ++i) {
    const uint8_t fixed = question.op->operand_dtype(i, dtype);
    question.dtypes.push_back(fixed ? fixed : static_cast<uint8_t>(PLUGRAD_F32));  // the problems have scales of f16, too
  }
  return question;
}

bool claimed(const Session& session, const Question& question) {
  const uint16_t base = row_of(question.op->opcode).only_immediates() ? PLUGRAD_IMMEDIATE : 0;
  const auto answer = [&](uint16_t layout) {
    return resolve(session.device.table(), session.device.handle(), question, layout);
  };
  return answer(0) || answer(base);
}

Cell check_cell(Session& session, Tally& tally, const Question& question, Column column, Queue& queue) {
  const OpRow& row = row_of(question.op->opcode);
  const std::string title = text_of(question) + " [" + kColumnNames[static_cast<int>(column)] + "]";
  std::vector<Trial> trials = trials_of(session, question, column);
  if (trials.empty()) return Cell::impossible;
  uint16_t layout = 0;
  for (const Trial& trial : trials) layout |= trial.layout;
  const plugrad_kernel* kernel = resolve(session.device.table(), session.device.handle(), question, layout);
  if (!kernel && question.op->serves_every_layout() && !question.flags) {
    tally.fail(title + ": declined; FILL, COPY and CAST must serve every class");
    return Cell::failed;
  }
  if (!kernel) return Cell::declined;
  const int total = static_cast<int>(trials.size());
  int declined = 0;
  try {
    Batch batch(session.device, queue, row, question, kernel);
    for (Trial& trial : trials) batch.add(std::move(trial));
    const Outcome outcome = batch.run();
    if (!outcome.ok()) tally.fail(title + ": sync returned " + outcome.text());
    declined = batch.verify(tally, title);
  } catch (const Breach& breach) {
    tally.fail(title + ": " + breach.what());
  }
  tally.decline(static_cast<uint64_t>(declined));
  if (declined == total && column == Column::dense)
    tally.fail(title + ": resolve returns a kernel, but run declines all " + std::to_string(total) + " problems");
  if (tally.failures()) return Cell::failed;
  if (!tally.cases()) return Cell::blank;
  return declined == total ? Cell::declined : Cell::ok;
}

std::vector<std::string> missing_of_tier0(const Session& session) {
  constexpr uint8_t kTier0[] = {PLUGRAD_F32, PLUGRAD_I64, PLUGRAD_BOOL};
  std::vector<std::string> missing;
  for (const OpInfo& op : kOps) {
    for (const uint8_t& dtype : kTier0) {
      if (!op.is_needed_in(dtype)) continue;
      for (const Question& question : questions(op, std::span(&dtype, 1), kTier0))
        if (!claimed(session, question)) missing.push_back(text_of(question));
    }
  }
  return missing;
}

void write_kernels(std::ostream& out, Session& session) {
  for (const OpInfo& op : kOps) {
    out << op.name;
    for (const uint8_t& dtype : kAll)
      if (std::ranges::any_of(questions(op, std::span(&dtype, 1), kAll),
                              [&](const Question& question) { return claimed(session, question); }))
        out << ' ' << dtype_label_of(dtype);
    out << '\n';
  }
}

std::vector<Case> op_cases() {
  std::vector<Case> list;
  for (const OpInfo& op : kOps)
    list.push_back({std::string("op.") + op.name, [&op](Session& session, Tally& tally) { check_op(session, tally, op); }});
  return list;
}

}  // namespace plugrad::conformance
