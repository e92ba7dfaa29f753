// plugrad-conform: checks a plugin file against the contract.
#include <sdk/conformance/communicator.hpp>
#include <sdk/conformance/conform_options.hpp>
#include <sdk/conformance/grade.hpp>
#include <sdk/conformance/perf.hpp>
#include <sdk/conformance/supervisor.hpp>
#include <sdk/conformance/training.hpp>
#include <sdk/conformance/worker.hpp>

#include <process/file_text.hpp>

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

namespace conformance = plugrad::conformance;
namespace po = boost::program_options;

constexpr int kGood = 0, kFailed = 1, kUnusable = 2;

constexpr const char* kUsage = R"(usage: plugrad-conform [options] FILE

Loads a backend plugin and checks it: the rules of the contract, memory, streams, and every op that it
claims, in every dtype and class of layouts, against references in higher precision. A communicator's file is checked by
three processes: collectives, messages and groups, time-outs, abort, and the death of a rank.

)";
constexpr const char* kExamples = R"(
The plugin runs in a process of its own. If it crashes, hangs, throws or ends that process, the case that ran fails, and the
others run in another process. What the plugin prints, and what it changes in the process, is a failure as well.

examples:
  plugrad-conform lib/plugrad/plugins-v0/libplugrad-backend-cpu.so
  plugrad-conform --only EXP,MATMUL --dtype f32 ./libplugrad-backend-mynpu.so   what you work on
  plugrad-conform --level 3 --badge level.svg FILE   what training needs, training included
  plugrad-conform --only memory. ./libplugrad-backend-mynpu.so   all cases whose name begins so
  plugrad-conform --option threads=1 --device 1 --jobs 4 --junit report.xml FILE
  plugrad-conform ./libplugrad-communicator-mynet.so
  plugrad-conform --launcher 'mpirun -n 3' lib/plugrad/plugins-v0/libplugrad-communicator-mpi.so
  gdb --args plugrad-conform --in-process --only EXP FILE   in a debugger

exit status: 0 all good, or no device and a reason; 1 failures; 2 bad usage, or a file that cannot be used
)";

using conformance::Request;

bool matches(const std::string& name, const std::string& wanted) {
  return name == wanted || name == "op." + wanted || (wanted.back() == '.' && name.starts_with(wanted));
}

// Returns the numbers of the cases to run. Throws if a name matches no case.
std::vector<size_t> selected(const std::vector<std::string>& only) {
  const auto& all = conformance::all_cases();
  for (const std::string& wanted : only)
    if (std::ranges::none_of(all, [&](const conformance::Case& one) { return matches(one.name, wanted); }))
      throw po::error("--only " + wanted + ": no case has that name; --list shows them");
  std::vector<size_t> numbers;
  for (size_t i = 0; i < all.size(); ++i)
    if ((only.empty() && all[i].name != "replay") ||
        std::ranges::any_of(only, [&](const std::string& wanted) { return matches(all[i].name, wanted); }))
      numbers.push_back(i);
  return numbers;
}

std::string quoted_for_shell(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,+:";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Returns the options that select and open the device, as on the command line.
std::string opening(const conformance::Settings& settings) {
  std::string words;
  if (settings.device) words += " --device " + std::to_string(settings.device);
  for (const auto& [key, value] : settings.options) words += " --option " + quoted_for_shell(key + "=" + value);
  return words;
}

// Returns the command to run a case again, without the case's name.
std::string again(const Request& request) {
  const conformance::Settings& s = request.settings;
  if (!s.replay.empty())
    return "plugrad-conform --replay " + quoted_for_shell(s.replay) + " " + quoted_for_shell(request.file);
  return "plugrad-conform " + quoted_for_shell(request.file) + (s.seed != 1 ? " --seed " + std::to_string(s.seed) : "") +
         opening(s);
}

// Whether a level up to `level` needs the case.
bool is_needed(size_t number, int level) {
  const int own = conformance::level_of(conformance::all_cases()[number].name);
  return own >= 0 && own <= level;
}

// Runs all cases in this process.
conformance::Summary run_here(const Request& request, const std::vector<size_t>& cases) {
  conformance::Summary summary;
  conformance::Message last{};
  conformance::Worker worker(request.file, request.settings, [&](const conformance::Message& message) {
    if (message.kind == conformance::Say::log && request.settings.verbose) std::cerr << "log: " << message.fields[0] << "\n";
    if (message.kind != conformance::Say::log && message.kind != conformance::Say::running &&
        message.kind != conformance::Say::changed)
      last = message;
  });
  if (last.kind == conformance::Say::unusable) throw conformance::Unloadable(last.fields.at(0));
  if (last.kind == conformance::Say::breach) throw conformance::Breach(last.fields.at(0));
  summary.backend = last.fields.at(0);
  summary.version = last.fields.at(1);
  (worker.is_ready() ? summary.device : summary.no_device) = last.fields.at(2);
  for (const size_t number : worker.is_ready() ? cases : std::vector<size_t>()) {
    worker.run(conformance::all_cases()[number]);
    conformance::Result result = conformance::result_in(last);
    std::ranges::move(result.matrix, std::back_inserter(summary.matrix));
    summary.found.push_back({conformance::all_cases()[number].name, std::move(result), false});
  }
  if (!worker.is_ready()) return summary;
  worker.tell_missing();
  summary.missing_of_tier0 = last.fields;
  return summary;
}

// The names in a file, without comments.
std::vector<std::string> names_in(const std::string& path) {
  const std::optional<std::string> text = plugrad::file_text(path);
  if (!text) throw po::error("--skip " + path + ": cannot be read; a file with the name of a case per line expected");
  std::istringstream in(*text);
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    line = line.substr(0, line.find('#'));
    const size_t end = line.find_last_not_of(" \t\r");
    if (end != line.npos) names.push_back(line.substr(line.find_first_not_of(" \t"), end + 1));
  }
  return names;
}

// Marks the failures expected by the user. An expected failure that does not happen is a failure itself.
void expect_failures(conformance::Summary& summary, const std::vector<std::string>& names) {
  std::vector<std::string> stale;
  for (const std::string& name : names) {
    bool ran = false, fails = false;
    for (conformance::Found& found : summary.found) {
      if (!matches(found.name, name)) continue;
      ran = true;
      found.expected = found.result.failures > 0;
      fails |= found.expected;
    }
    if (ran && !fails) stale.push_back(name + " does not fail any more: remove it from the file of --skip");
  }
  if (!stale.empty()) summary.found.push_back({"skip", {1, stale.size(), 0, stale, {}, {}}, false});
}

void require_tier0(conformance::Summary& summary) {
  const std::vector<std::string>& missing = summary.missing_of_tier0;
  conformance::Result result{1, missing.size(), 0, {}, {}, {}};
  for (const std::string& question : missing) result.lines.push_back(question + " is missing");
  summary.found.push_back({"tier0", std::move(result), false});
}

conformance::Plan plan_of(const Request& request, const std::vector<std::string>& words) {
  conformance::Plan plan;
  plan.worker = {std::filesystem::read_symlink("/proc/self/exe").string()};
  plan.worker.insert(plan.worker.end(), words.begin(), words.end());
  plan.worker.emplace_back("--worker");
  plan.deadline = std::chrono::seconds(request.deadline);
  plan.budget = std::chrono::seconds(request.budget);
  plan.jobs = request.jobs;
  plan.verbose = request.settings.verbose;
  plan.progress = isatty(STDERR_FILENO);
  return plan;
}

// What a badge certifies: the plugin and its device, this program, the contract's revision, the seed and the date.
std::string certificate(const conformance::Summary& summary, const Request& request) {
  char date[16] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  uint64_t cases = 0;
  for (const conformance::Found& found : summary.found) cases += found.result.cases;
  return summary.backend + " " + summary.version + " on " + summary.device + ": " + std::to_string(cases) +
         " cases of plugrad-conform " PLUGRAD_VERSION ", contract 0 revision " + std::to_string(PLUGRAD_REVISION) +
         ", seed " + std::to_string(request.settings.seed) + ", " + date;
}

void write(const conformance::Summary& summary, const Request& request) {
  if (!request.junit.empty()) {
    std::ofstream out(request.junit);
    write_junit(out, summary);
    if (!out.flush()) throw std::runtime_error("--junit " + request.junit + ": cannot be written");
  }
  if (!request.badge.empty()) {
    std::ofstream out(request.badge);
    out << badge_of(grade_of(summary, summary.highest), certificate(summary, request));
    if (!out.flush()) throw std::runtime_error("--badge " + request.badge + ": cannot be written");
  }
  if (request.json) write_json(std::cout, summary);
  else write_text(std::cout, summary);
  if (!std::cout.flush()) throw std::runtime_error("cannot write to standard output");
}

int check_communicator_file(const Request& request) {
  const std::vector<std::string> known = conformance::communicator_checks();
  for (const std::string& wanted : request.only)
    if (std::ranges::find(known, wanted) == known.end())
      throw po::error("--only " + wanted + ": a communicator has no such check; --list shows them");
  conformance::CommunicatorPlan plan;
  plan.file = std::filesystem::absolute(request.file);
  plan.options = request.settings.options;
  plan.launcher = request.launcher;
  plan.only = request.only;
  conformance::Summary summary = conformance::check_communicator(plan);
  summary.command = again(request);
  if (!request.launcher.empty()) summary.command += " --launcher " + quoted_for_shell(request.launcher);
  expect_failures(summary, request.skip.empty() ? std::vector<std::string>() : names_in(request.skip));
  write(summary, request);
  return summary.failures() ? kFailed : kGood;
}

int check(const Request& request, const std::vector<std::string>& words) {
  if (conformance::is_communicator(request.file)) return check_communicator_file(request);
  conformance::Plan plan = plan_of(request, words);
  plan.cases = selected(request.only);
  if (request.level >= 0) std::erase_if(plan.cases, [&](size_t number) { return !is_needed(number, request.level); });
  if (!request.settings.trace.empty()) conformance::traced_calls(request.settings.trace);  // throws for another file
  if (request.kernels || request.perf) {
    const auto earlier = request.baseline.empty() ? std::nullopt : std::optional(conformance::times_in(request.baseline));
    const std::string answer = answer_of(plan, request.perf ? "perf" : "kernels");
    std::cout << (request.perf && !request.json ? conformance::table_of(answer, earlier) : answer);
    return kGood;
  }
  const std::vector<std::string> expected = request.skip.empty() ? std::vector<std::string>() : names_in(request.skip);
  const bool whole = request.only.empty() && request.settings.dtypes.empty();
  conformance::Summary summary = request.in_process ? run_here(request, plan.cases) : supervised(plan, whole);
  summary.whole = whole && request.level < 0;
  if (whole) summary.highest = request.level < 0 ? conformance::kLevels - 1 : request.level;
  summary.plugin = request.file;
  summary.command = again(request);
  summary.trial = "plugrad trial " + quoted_for_shell(request.file) + opening(request.settings);
  if (!summary.device.empty() && (request.train || request.level >= conformance::kTrains))
    std::ranges::move(conformance::trained(plan, request.file, request.settings), std::back_inserter(summary.found));
  if (whole && request.settings.require_tier0 && !summary.device.empty()) require_tier0(summary);
  expect_failures(summary, expected);
  write(summary, request);
  const bool reached = request.level < 0 || grade_of(summary, summary.highest).level >= request.level;
  return summary.failures() || !reached ? kFailed : kGood;
}

// Reports a failure before the first case, in the requested form.
int fail(const Request& request, const std::string& why) {
  conformance::Summary summary;
  summary.plugin = request.file;
  summary.device = "not opened";
  summary.command = again(request);
  summary.whole = false;
  summary.found.push_back({"process.load", {1, 1, 0, {why}, {}, {}}, false});
  write(summary, request);
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  try {
    parse(argc, argv, request);
    if (request.help) {
      std::cout << kUsage << request.shown << kExamples;
      return kGood;
    }
    if (!request.rank_check.empty())
      return conformance::run_rank(request.rank_check, request.file, request.settings.options);
    if (request.worker) {
      conformance::serve(request.file, request.settings);
      return kGood;
    }
    if (!request.list) return check(request, {argv + 1, argv + argc});
    if (conformance::is_communicator(request.file)) {
      for (const std::string& name : conformance::communicator_checks()) std::cout << name << "\n";
      return kGood;
    }
    for (const size_t number : selected(request.only)) std::cout << conformance::all_cases()[number].name << "\n";
    return kGood;
  } catch (const po::error& error) {
    std::cerr << "plugrad-conform: " << error.what() << "; see --help\n";
    return kUnusable;
  } catch (const conformance::Breach& breach) {
    return fail(request, breach.what());
  } catch (const std::exception& error) {
    std::cerr << "plugrad-conform: " << error.what() << "\n";
    return kUnusable;
  }
}
