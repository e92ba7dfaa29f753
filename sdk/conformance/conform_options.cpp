#include <sdk/conformance/conform_options.hpp>

#include <sdk/conformance/grade.hpp>

#include <algorithm>
#include <sstream>

namespace plugrad::conformance {
namespace {

std::vector<std::string> listed(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) {
    std::istringstream in(text);
    for (std::string item; std::getline(in, item, ',');)
      if (!item.empty()) items.push_back(item);
  }
  return items;
}

OptionList key_values(const std::vector<std::string>& texts) {
  OptionList list;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos) throw po::error("--option " + text + ": expected key=value");
    list.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return list;
}

std::vector<uint8_t> dtypes_of(const std::vector<std::string>& labels) {
  std::vector<uint8_t> dtypes;
  for (const std::string& label : labels) {
    const auto found = std::ranges::find_if(plugrad::kDTypes, [&](const auto& each) { return label == each.label; });
    if (found == std::end(plugrad::kDTypes)) throw po::error("--dtype " + label + ": there is no such dtype");
    dtypes.push_back(found->dtype);
  }
  return dtypes;
}

// Throws for options that contradict each other or make no sense.
void check_options(const Request& request, bool has_level, bool has_budget) {
  if (request.jobs < 1 || request.jobs > 256) throw po::error("--jobs: a number from 1 to 256 expected");
  if (has_level && (request.level < 0 || request.level >= kLevels))
    throw po::error("--level " + std::to_string(request.level) + ": a number from 0 to 5 expected");
  if (request.level >= 0 && !(request.only.empty() && request.settings.dtypes.empty()))
    throw po::error("--level runs all cases of the levels: leave out --only and --dtype");
  if (!request.badge.empty() && !(request.only.empty() && request.settings.dtypes.empty()))
    throw po::error("--badge needs all cases: leave out --only and --dtype");
  if (request.perf && request.settings.timed.size() != request.only.size())
    throw po::error("--perf times ops: name ops with --only, such as EXP");
  if (!request.perf && !(request.settings.trace.empty() && request.baseline.empty()))
    throw po::error("--trace and --baseline need --perf");
  if (request.json && !request.baseline.empty()) throw po::error("--baseline compares in a table: leave out --json");
  if (has_budget && request.budget < 1) throw po::error("--budget: at least 1 second expected");
  if (request.deadline < 1) throw po::error("--deadline: at least 1 second expected");
  if (request.file.empty() && !request.help && !request.list) throw po::error("expected the path of a plugin's file");
}

// Repeatable options, and lists.
struct Lists {
  std::vector<std::string> options, only, dtypes;
};

// Returns the op of a case or of a bare name, or null.
const plugrad::OpInfo* op_named(std::string_view name) {
  if (name.starts_with("op.")) name.remove_prefix(3);
  const auto* const op = std::ranges::find_if(plugrad::kOps, [&](const plugrad::OpInfo& each) { return name == each.name; });
  return op == std::end(plugrad::kOps) ? nullptr : op;
}

void add_options(Request& request, Lists& lists) {
  Settings& s = request.settings;
  request.shown.add_options()("help,h", po::bool_switch(&request.help), "show this help")(
      "list", po::bool_switch(&request.list), "list the cases")(
      "kernels", po::bool_switch(&request.kernels), "list the dtypes for which the plugin has a kernel, op by op")(
      "json", po::bool_switch(&request.json), "print JSON")("junit", po::value(&request.junit)->value_name("FILE"),
                                                            "also write JUnit's XML to this file")(
      "only", po::value(&lists.only)->value_name("NAME,..."),
      "ops (EXP), cases (memory.alloc), or all cases with a prefix (stream.)")(
      "dtype", po::value(&lists.dtypes)->value_name("NAME,..."),
      "of the ops' cases only those with these dtypes (f32,bf16)")(
      "train", po::bool_switch(&request.train), "also train three small models, which the program plugrad does")(
      "level", po::value(&request.level)->value_name("N"),
      "run the cases of the levels up to this one, 0 to 5, and fail if the plugin does not reach it")(
      "badge", po::value(&request.badge)->value_name("FILE"), "also draw the level as a badge in SVG")(
      "replay", po::value(&s.replay)->value_name("CASE"),
      "run one call alone, from a file that a program with PLUGRAD_SHADOW left behind")(
      "skip", po::value(&request.skip)->value_name("FILE"),
      "names of cases that are known to fail, one in each line; one that does not fail is a failure")(
      "seed", po::value(&s.seed)->value_name("N"), "seed of the random values (1)")(
      "device", po::value(&s.device)->value_name("N"), "the number of the device (0)")(
      "option", po::value(&lists.options)->value_name("KEY=VALUE"),
      "an option for opening the device or the communicator; may be repeated")(
      "launcher", po::value(&request.launcher)->value_name("COMMAND"),
      "starts the ranks of a communicator that has a launcher of its own: 'mpirun -n 3'")(
      "jobs", po::value(&request.jobs)->value_name("N"), "processes at a time (1)")(
      "deadline", po::value(&request.deadline)->value_name("SECONDS"),
      "how long a check may take until it counts as hanging (300); on a busy machine, time without a processor does not "
      "count")("budget", po::value(&request.budget)->value_name("SECONDS"),
               "after this time no further case begins; those that did not are listed")(
      "perf", po::bool_switch(&request.perf),
      "check nothing, but time the kernels of f32, or of --only and --dtype, also as shares of what the device's copies "
      "and products allow")("trace", po::value(&s.trace)->value_name("FILE"),
                            "with --perf: time calls of the shapes in this profiler's trace")(
      "baseline", po::value(&request.baseline)->value_name("FILE"), "with --perf: compare with this earlier report in JSON")(
      "require-tier0", po::bool_switch(&s.require_tier0), "fail on missing ops of tier 0")(
      "in-process", po::bool_switch(&request.in_process), "run the plugin in this process, for debuggers and profilers")(
      "verbose,v", po::bool_switch(&s.verbose), "print more lines about failures, and the plugin's log");
}

}  // namespace

void parse(int argc, char** argv, Request& request) {
  Lists lists;
  Settings& s = request.settings;
  add_options(request, lists);
  po::options_description all;
  all.add(request.shown)
      .add_options()("file", po::value(&request.file))("worker", po::bool_switch(&request.worker))(
          "communicator-rank", po::value(&request.rank_check));
  po::positional_options_description positional;
  positional.add("file", 1);
  po::variables_map values;
  constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(argc, argv).options(all).positional(positional).style(kStyle).run(), values);
  po::notify(values);
  s.options = key_values(lists.options);
  s.dtypes = dtypes_of(listed(lists.dtypes));
  request.only = s.replay.empty() ? listed(lists.only) : std::vector<std::string>{"replay"};
  if (request.perf)
    for (const std::string& name : request.only)
      if (const plugrad::OpInfo* op = op_named(name)) s.timed.push_back(op->opcode);
  check_options(request, values.count("level"), values.count("budget"));
}

}  // namespace plugrad::conformance
