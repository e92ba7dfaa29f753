// A call of a kernel from a file written by a program with PLUGRAD_SHADOW: the op alone, on its recorded operands.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/session.hpp>
#include <sdk/conformance/trial.hpp>

#include <algorithm>
#include <bit>
#include <fstream>
#include <sstream>

namespace plugrad::conformance {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 32;

[[noreturn]] void refuse(const std::string& path, const std::string& why) { throw Breach("--replay " + path + ": " + why); }

// The words of a file, line by line.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), file_(path) {
    if (!file_) refuse(path_, "cannot be read");
  }
  // Goes to the next line. The line must begin with one of these words. Returns the word.
  std::string next(const std::vector<std::string>& allowed) {
    std::string line, word;
    ++number_;
    if (!std::getline(file_, line)) fail("the file ends; '" + allowed[0] + "' expected");
    words_.clear();
    words_.str(line);
    words_ >> word;
    if (std::ranges::count(allowed, word) == 0) fail("it begins with '" + word + "'; '" + allowed[0] + "' expected");
    return word;
  }
  bool at_end() { return file_.peek() == std::ifstream::traits_type::eof(); }
  std::string word(const char* what) {
    std::string text;
    if (!(words_ >> text)) fail(std::string("there is no ") + what);
    return text;
  }
  int64_t number(const char* what, int64_t least, int64_t most) {
    const std::string text = word(what);
    size_t used = 0;
    int64_t value = 0;
    try {
      value = std::stoll(text, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != text.size() || value < least || value > most) fail(std::string("'") + text + "' is no valid " + what);
    return value;
  }
  // Reads bytes in hexadecimal digits.
  std::vector<std::byte> all_bytes() {
    const std::string text = word("value");
    if (text.size() % 2 || text.find_first_not_of(kDigits) != text.npos) fail("'" + text + "' is not hexadecimal");
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < text.size(); i += 2)
      bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
    return bytes;
  }
  // The same, of a known number of bytes.
  void bytes(std::byte* to, size_t count) {
    const std::vector<std::byte> read = all_bytes();
    if (read.size() != count)
      fail("a value has " + std::to_string(read.size()) + " bytes, expected " + std::to_string(count));
    std::ranges::copy(read, to);
  }
  bool has_more() { return !(words_ >> std::ws).eof(); }
  [[noreturn]] void fail(const std::string& why) { refuse(path_, "line " + std::to_string(number_) + ": " + why); }

 private:
  static constexpr const char* kDigits = "0123456789abcdef";

  std::string path_;
  std::ifstream file_;
  std::istringstream words_;
  int number_ = 0;
};

struct Replay {
  Question question;
  Trial trial;
};

uint8_t dtype_in(Lines& lines) {
  const std::string label = lines.word("dtype");
  const auto* found = std::ranges::find_if(kDTypes, [&](const auto& each) { return label == each.label; });
  if (found == std::end(kDTypes)) lines.fail("there is no dtype '" + label + "'");
  return found->dtype;
}

const OpInfo& op_in(Lines& lines) {
  lines.next({"op"});
  const std::string name = lines.word("op");
  const auto* found = std::ranges::find_if(kOps, [&](const OpInfo& each) { return name == each.name; });
  if (found == std::end(kOps)) lines.fail("there is no op '" + name + "'");
  return *found;
}

// Reads an immediate operand: an array of the output's shape, or of a single element where the op takes a single element.
Array immediate_in(Lines& lines, const OpInfo& op, int input, const Shape& shape) {
  const uint8_t dtype = dtype_in(lines);
  uint64_t bits = 0;
  lines.bytes(reinterpret_cast<std::byte*>(&bits), sizeof bits);
  Array array(dtype, op.scalar_inputs() >> input & 1 ? Shape{} : shape);
  const long double value = is_floating(dtype) ? static_cast<long double>(std::bit_cast<double>(bits))
                                               : static_cast<long double>(static_cast<int64_t>(bits));
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, value);
  return array;
}

// An operand in memory. Appends its strides to the trial.
Array operand_in(Lines& lines, Trial& trial, bool& unaligned) {
  const uint8_t dtype = dtype_in(lines);
  const std::string aligned = lines.word("alignment");
  if (aligned != "aligned" && aligned != "unaligned") lines.fail("'" + aligned + "': aligned or unaligned expected");
  unaligned = aligned == "unaligned";
  const int64_t rank = lines.number("rank", 0, PLUGRAD_MAX_RANK);
  Shape shape, strides;
  int64_t count = 1;
  for (int64_t axis = 0; axis < rank; ++axis) {
    shape.push_back(lines.number("extent", 1, kMostElements / count));
    count *= shape.back();
  }
  for (int64_t axis = 0; axis < rank; ++axis) strides.push_back(lines.number("stride", -kMostElements, kMostElements));
  Array array(dtype, shape);
  lines.next({"values"});
  if (lines.has_more())
    for (int64_t i = 0; i < count; ++i) lines.bytes(array.element(i), element_size(dtype));
  trial.strides.push_back(strides);
  return array;
}

Replay read(const std::string& path, uint64_t alignment) {
  Lines lines(path);
  lines.next({"plugrad-case"});
  if (lines.number("version", 0, INT64_MAX) != 0) lines.fail("the file is of a later version");
  Replay replay{};
  const OpInfo& op = op_in(lines);
  replay.question.op = &op;
  lines.next({"flags"});
  replay.question.flags = static_cast<uint32_t>(lines.number("flags", 0, 7));
  lines.next({"attributes"});
  if (lines.has_more()) {
    replay.trial.problem.attributes = lines.all_bytes();
  }
  Trial& trial = replay.trial;
  trial.arrangement.in_place = -1;
  for (int k = 0; k < op.operand_count(); ++k) {
    Placement placement;
    std::vector<Array>& list = k < op.outputs ? trial.problem.outputs : trial.problem.inputs;
    if (lines.next({"operand", "immediate"}) == "immediate") {
      if (k < op.outputs) lines.fail("an output cannot be a number");
      list.push_back(immediate_in(lines, op, k - op.outputs, trial.problem.outputs[0].shape()));
      trial.strides.emplace_back(list.back().shape().size(), 0);
      placement.form = Form::immediate;
      trial.layouts.push_back(PLUGRAD_IMMEDIATE);
    } else {
      list.push_back(operand_in(lines, trial, placement.unaligned));
      placement.unaligned = placement.unaligned && element_size(list.back().dtype()) % alignment != 0;
      trial.layouts.push_back(layout_of(list.back().shape(), trial.strides.back(), placement.unaligned));
    }
    trial.layout |= trial.layouts.back();
    trial.arrangement.operands.push_back(placement);
    replay.question.dtypes.push_back(list.back().dtype());
  }
  if (!lines.at_end()) {
    lines.next({"in_place"});
    trial.arrangement.in_place = static_cast<int>(lines.number("input", 0, op.inputs - 1));
  }
  return replay;
}

// Throws Breach unless the op is defined for these dtypes and operands.
void check_case(const std::string& path, const Replay& replay, const OpRow& row) {
  const Question& question = replay.question;
  const bool defined = std::ranges::any_of(kDTypes, [&](const auto& dtype) {
    Question other = question_for(question.op->opcode, dtype.dtype);
    for (size_t k = 0; k < other.dtypes.size(); ++k)
      if (!other.dtypes[k]) other.dtypes[k] = question.dtypes[k];
    return question.op->is_for(dtype.dtype) && other.dtypes == question.dtypes;
  });
  if (!defined) refuse(path, text_of(question) + " is not defined");
  Random random(1);
  const size_t size = row.problems(question, random)[0].attributes.size(), own = replay.trial.problem.attributes.size();
  if (own != size)
    refuse(path, "the attributes have " + std::to_string(own) + " bytes, " + std::to_string(size) + " expected");
  const bool one_shape = question.op->works_in_place() && question.op->shape != OpShape::update;
  for (const Array& input : replay.trial.problem.inputs)
    if (one_shape && input.shape() != replay.trial.problem.outputs[0].shape())
      refuse(path, "an input has the shape " + text_of(input.shape()) + ", and the output another");
}

void check_replay(Session& session, Tally& tally) {
  if (session.settings.replay.empty()) return tally.skip("no case file is named (--replay)");
  Replay replay = read(session.settings.replay, session.device.info().alignment);
  const std::string title = text_of(replay.question) + " of " + session.settings.replay;
  const OpRow& row = row_of(replay.question.op->opcode);
  check_case(session.settings.replay, replay, row);
  const plugrad_kernel* kernel =
      resolve(*session.plugin.table, session.device.handle(), replay.question, replay.trial.layout);
  if (!kernel) return tally.skip("the plugin has no kernel for " + text_of(replay.question) + " in this layout");
  Queue queue = session.device.make_queue();
  Batch batch(session.device, queue, row, replay.question, kernel);
  batch.add(std::move(replay.trial));
  const Outcome outcome = batch.run();
  if (!outcome.ok()) tally.fail(title + ": sync returned " + outcome.text());
  tally.decline(static_cast<uint64_t>(batch.verify(tally, title)));
}

}  // namespace

std::vector<Case> replay_cases() { return {{"replay", check_replay}}; }

}  // namespace plugrad::conformance
