// Checks the text of a saved model; it may be hostile.
#include <core/io/model_format.hpp>
#include <core/io/strict_json.hpp>
#include <core/runtime/dispatch/op_table.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace plugrad::io {
namespace {
using Json = nlohmann::json;
constexpr int kDepth = 8;
constexpr int64_t kMostElements = int64_t{1} << 48;
// A view has at most so many times the elements of all memories; else work would be endless.
constexpr int64_t kMostRepeats = 4096;
// A memory has at most so many times the elements written to it.
constexpr int64_t kMostGaps = 16;

class Parser {
 public:
  Parser(const Json& text, const std::function<void(const std::string&)>& fail) : text_(text), fail_(fail) {}

  ModelContents parse() {
    if (!text_.is_object()) stop("it is no object");
    const int64_t version = integer(member(text_, "version"));
    if (version != kModelVersion)
      stop("it has version " + std::to_string(version) + ", and this plugrad reads version " +
           std::to_string(kModelVersion) + ": use a newer plugrad");
    for (const Json& each : list(member(text_, "memories"))) add_memory(each);
    is_written_.resize(made_.memories.size());
    is_input_.resize(made_.memories.size());
    written_elements_.resize(made_.memories.size());
    for (size_t i = 0; i < made_.memories.size(); ++i) is_written_[i] = !made_.memories[i].weight.empty();
    for (const Json& each : list(member(text_, "inputs"))) add_input(each);
    for (const Json& each : list(member(text_, "calls"))) add_call(each);
    where_ = "the outputs: ";
    for (const Json& each : list(member(text_, "outputs"))) made_.outputs.push_back(read_view(each));
    if (made_.outputs.empty()) stop("there are none");
    require_writes();
    return std::move(made_);
  }

 private:
  [[noreturn]] void stop(const std::string& what) const {
    fail_(where_ + what);
    throw Error(Code::internal, "a failure was ignored");
  }
  const Json& member(const Json& object, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end()) stop(std::string("it has no '") + name + "'");
    return *found;
  }
  const Json& list(const Json& json) const {
    if (!json.is_array()) stop("something is no list");
    return json;
  }
  const Json& at(const Json& json, size_t i) const {
    if (list(json).size() <= i) stop("a list is too short");
    return json[i];
  }
  int64_t integer(const Json& json) const {
    if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX))
      stop("a number is no integer of 64 bits");
    return json.get<int64_t>();
  }
  double real(const Json& json) const {
    if (json.is_number()) return json.get<double>();
    if (json == "inf") return std::numeric_limits<double>::infinity();
    if (json == "-inf") return -std::numeric_limits<double>::infinity();
    if (json != "nan") stop("something is no number");
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::string text(const Json& json) const {
    if (!json.is_string()) stop("something is no text");
    return json.get<std::string>();
  }
  Shape shape(const Json& json, int64_t least) const {
    if (list(json).size() > PLUGRAD_MAX_RANK) stop("a list has more than 8 numbers");
    Shape made;
    for (const Json& each : json) {
      const int64_t number = integer(each);
      if (number < least || number > kMostElements) stop("an extent or a stride is out of range");
      made.push_back(number);
    }
    return made;
  }

  void add_memory(const Json& json) {
    where_ = "memory " + std::to_string(made_.memories.size()) + ": ";
    ModelMemory memory;
    const std::string dtype = text(at(json, 0));
    try {
      memory.dtype = dtype_from_name(dtype);
    } catch (const Error&) {
      stop("its dtype is '" + dtype + "'");
    }
    memory.count = integer(at(json, 1));
    if (memory.count < 1 || memory.count > kMostElements) stop("it has " + std::to_string(memory.count) + " elements");
    memory.weight = text(at(json, 2));
    total_ = std::min(total_ + memory.count, kMostElements);
    made_.memories.push_back(std::move(memory));
  }

  uint32_t memory(const Json& json) const {
    const int64_t number = integer(json);
    if (number < 0 || number >= static_cast<int64_t>(made_.memories.size()))
      stop("there is no memory " + std::to_string(number));
    return static_cast<uint32_t>(number);
  }

  void add_input(const Json& json) {
    where_ = "input " + std::to_string(made_.inputs.size()) + ": ";
    ModelView input{memory(at(json, 0)), 0, shape(at(json, 1), 1), {}};
    if (is_written_[input.memory]) stop("its memory is that of a weight or of another input");
    int64_t count = 1;
    for (const int64_t extent : input.shape)
      if (__builtin_mul_overflow(count, extent, &count)) stop("it is too large");
    if (count != made_.memories[input.memory].count) stop("its memory has another size");
    is_written_[input.memory] = is_input_[input.memory] = true;
    made_.inputs.push_back(std::move(input));
  }

  // least: of a stride
  ModelView view(const Json& json, int64_t least) const {
    ModelView made{memory(at(json, 0)), integer(at(json, 1)), shape(at(json, 2), 1), shape(at(json, 3), least)};
    if (made.shape.rank() != made.strides.rank()) stop("a view has not as many strides as extents");
    const int64_t count = made_.memories[made.memory].count;
    int64_t first = made.offset, last = made.offset, elements = 1;
    if (made.offset < 0 || made.offset >= count) stop("a view begins outside of its memory");
    for (int d = 0; d < made.shape.rank(); ++d) {
      int64_t reach = 0;
      int64_t& end = made.strides[d] < 0 ? first : last;
      if (__builtin_mul_overflow(made.shape[d] - 1, made.strides[d], &reach) || __builtin_add_overflow(end, reach, &end) ||
          __builtin_mul_overflow(elements, made.shape[d], &elements) || elements > kMostElements)
        stop("a view is too large");
    }
    if (first < 0 || last >= count) stop("a view leaves its memory");
    if (elements / kMostRepeats > total_) stop("a view repeats its elements too often");
    return made;
  }
  ModelView read_view(const Json& json) const {
    ModelView made = view(json, -kMostElements);
    if (!is_written_[made.memory]) stop("memory " + std::to_string(made.memory) + " is read before it is written");
    return made;
  }

  void add_call(const Json& json) {
    where_ = "call " + std::to_string(made_.ops.size()) + ": ";
    if (!json.is_object()) stop("it is no object");
    const std::string name = text(member(json, "op"));
    const auto found = std::ranges::find_if(kOps, [&](const OpInfo& each) { return op_label(each.opcode) == name; });
    if (found == std::end(kOps) || !is_saved_op(found->opcode)) stop("there is no op '" + name + "' for models");
    where_ = "call " + std::to_string(made_.ops.size()) + " (" + name + "): ";
    ModelOp op{found->opcode, {}, {}, {}};
    const Json &outputs = list(member(json, "out")), &inputs = list(member(json, "in"));
    // A file of an earlier version lacks the results that an op has got since. Nothing in the file reads them.
    const bool is_earlier = !outputs.empty() && outputs.size() < found->outputs && !returns_all_results(found->opcode);
    if ((outputs.size() != found->outputs && !is_earlier) || inputs.size() != found->inputs)
      stop("it has another number of operands");
    for (const Json& each : inputs) op.inputs.push_back(input(each));
    const bool adds = found->is_in_out(0);
    for (const Json& each : outputs) op.outputs.push_back(adds ? read_view(each) : view(each, 0));
    for (size_t k = 0; k < op.inputs.size(); ++k)
      if (!op.inputs[k].view && !(found->immediate_inputs() >> k & 1))
        stop("its input " + std::to_string(k) + " is a number, and must be a view of memory");
    add_attributes(op, json);
    for (size_t k = 0; k < op.outputs.size(); ++k) finish_output(op, k);
    made_.ops.push_back(std::move(op));
  }

  void finish_output(const ModelOp& op, size_t k) {
    const uint32_t to = op.outputs[k].memory;
    const int64_t elements = op.outputs[k].shape.count();
    if (elements > made_.memories[to].count) stop("a result has more elements than its memory");
    written_elements_[to] = std::min(written_elements_[to] + elements, kMostElements);
    if (is_input_[to] || !made_.memories[to].weight.empty()) stop("it writes to a weight or an input");
    if (k == 0 || returns_all_results(op.opcode)) is_written_[to] = true;
  }

  // A few bytes of a file must not claim gigabytes.
  void require_writes() {
    for (size_t i = 0; i < made_.memories.size(); ++i) {
      const ModelMemory& it = made_.memories[i];
      where_ = "memory " + std::to_string(i) + ": ";
      const bool is_given = !it.weight.empty() || is_input_[i];
      if (!is_given && it.count / kMostGaps > written_elements_[i]) stop("most of it is never written");
    }
  }

  ModelInput input(const Json& json) const {
    if (json.is_array()) return {read_view(json), 0};
    if (json.is_number_integer()) return {std::nullopt, integer(json)};
    return {std::nullopt, real(json)};
  }

  // Adds all attributes of the op. Further attributes are an error.
  void add_attributes(ModelOp& op, const Json& json) const {
    static constexpr char kBlank[256] = {};
    const ModelAttributes expected = attributes_of(op.opcode, kBlank);
    const auto given = json.find("attributes");
    const size_t count = given == json.end() ? 0 : given->size();
    if (count != expected.numbers.size() + expected.lists.size()) stop("it has other attributes than the op");
    for (const auto& [key, zero] : expected.numbers) op.attributes.numbers[key] = real(member(*given, key.c_str()));
    for (const auto& [key, none] : expected.lists) op.attributes.lists[key] = shape(member(*given, key.c_str()), 0);
  }

  const Json& text_;
  const std::function<void(const std::string&)>& fail_;
  std::string where_;
  ModelContents made_;
  std::vector<bool> is_written_, is_input_;  // by memory
  std::vector<int64_t> written_elements_;    // by memory
  int64_t total_ = 0;                        // elements of all memories
};
}  // namespace

ModelContents parsed_model(const std::string& text, const std::function<void(const std::string&)>& fail) {
  const Document document = parse_strictly(text, kDepth, fail);
  return Parser(document.root(), fail).parse();
}

}  // namespace plugrad::io
