#include <sdk/conformance/communicator.hpp>

#include <process/child.hpp>
#include <process/file_text.hpp>
#include <sdk/conformance/communicator_rank.hpp>
#include <sdk/conformance/plugin.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <thread>

namespace plugrad::conformance {
namespace {
namespace fs = std::filesystem;
using std::chrono::milliseconds;
constexpr int kRanks = 3;
constexpr std::chrono::seconds kMost{120};  // for a check
constexpr const char *kFolder = "PLUGRAD_CONFORM_FOLDER", *kRank = "PLUGRAD_CONFORM_RANK";

// A folder for the ranks of one check.
class Folder {
 public:
  Folder() {
    std::string pattern = fs::temp_directory_path() / "plugrad-conform-XXXXXX";
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no folder for temporary files: " + pattern);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> rank_words(const CommunicatorPlan& plan, const CommunicatorCheck& check) {
  std::vector<std::string> words{fs::read_symlink("/proc/self/exe").string(), "--communicator-rank", check.name, plan.file};
  for (const auto& [key, value] : plan.options) {
    words.emplace_back("--option");
    words.push_back(key + "=" + value);
  }
  return words;
}

// One process of a check, with what it printed and how it ended.
struct Running {
  Child child;
  std::array<std::string, 3> texts;
  std::optional<int> status;
  bool over = false;
};

// Starts the processes of a check: one for each rank, or the launcher alone.
std::vector<std::unique_ptr<Running>> started(const CommunicatorPlan& plan, const CommunicatorCheck& check,
                                              const std::string& folder) {
  std::vector<std::unique_ptr<Running>> all;
  std::istringstream text(plan.launcher);
  std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
  const bool launched = !words.empty();
  const std::vector<std::string> own = rank_words(plan, check);
  if (launched && words[0].find('/') == words[0].npos) words.insert(words.begin(), "/usr/bin/env");
  words.insert(words.end(), own.begin(), own.end());
  setenv(kFolder, folder.c_str(), 1);
  for (int rank = 0; rank < (launched ? 1 : kRanks); ++rank) {
    if (launched) unsetenv(kRank);
    else setenv(kRank, std::to_string(rank).c_str(), 1);
    auto& running = *all.emplace_back(std::make_unique<Running>());
    if (const std::string why = running.child.start(words); !why.empty()) throw std::runtime_error(words[0] + ": " + why);
  }
  return all;
}

// Waits for all of them. Those that hang are killed.
void collect(std::vector<std::unique_ptr<Running>>& all) {
  const auto end = std::chrono::steady_clock::now() + kMost;
  const auto runs = [](const auto& each) { return !each->over; };
  while (std::ranges::any_of(all, runs) && std::chrono::steady_clock::now() < end)
    for (auto& each : all) {
      if (each->over) continue;
      each->child.read(milliseconds(20), each->texts);
      each->over = each->child.ended(each->status);
    }
  for (auto& each : all) {
    if (!each->over) each->child.stop();
    each->child.read(milliseconds(1), each->texts);
  }
}

// What the ranks wrote: a line for each case's failure, each skip, and the number of cases.
void add_results(const std::string& folder, int ranks, bool dies, Result& result) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (dies && rank + 1 == ranks) continue;
    const auto text = file_text(folder + "/result." + std::to_string(rank));
    const std::string name = "rank " + std::to_string(rank) + ": ";
    if (!text) {
      ++result.failures;
      result.lines.push_back(name + "ended without a result");
      continue;
    }
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("cases ")) result.cases += std::stoull(line.substr(6));
      else if (line.starts_with("skip ")) result.skips.push_back(line.substr(5));
      else if (line.starts_with("fail ")) ++result.failures, result.lines.push_back(name + line.substr(5));
    }
  }
  std::ranges::sort(result.skips);
  const auto [first, last] = std::ranges::unique(result.skips);
  result.skips.erase(first, last);
}

int ranks_in(const std::string& folder) {
  int ranks = 0;
  for (const auto& each : fs::directory_iterator(folder)) ranks += each.path().filename().string().starts_with("result.");
  return ranks;
}

// The file gets its name when it is whole.
void write_result(const std::string& folder, const Rank& rank) {
  const std::string name = std::to_string(rank.rank());
  std::ofstream out(folder + "/part." + name);
  out << "cases " << rank.cases << "\n";
  for (const std::string& each : rank.skips) out << "skip " << each << "\n";
  for (const std::string& each : rank.failures) out << "fail " << each << "\n";
  out.close();
  fs::rename(folder + "/part." + name, folder + "/result." + name);
}

// A launcher of its own may kill all ranks as soon as one of them ends without the engine's farewell.
void wait_for_results(const std::string& folder, int ranks) {
  const auto end = std::chrono::steady_clock::now() + kCommTimeout + 2 * kCommGrace;
  while (ranks_in(folder) < ranks && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(10));
}

Result run_check(const CommunicatorPlan& plan, const CommunicatorCheck& check) {
  Result result;
  if (check.kills && !plan.launcher.empty()) {
    result.skips.push_back("a launcher of its own ends the ranks when one dies");
    return result;
  }
  const Folder folder;
  const auto begin = std::chrono::steady_clock::now();
  auto all = started(plan, check, folder.path());
  collect(all);
  const int ranks = plan.launcher.empty() ? kRanks : std::max(1, ranks_in(folder.path()));
  add_results(folder.path(), ranks, check.kills, result);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool expected = check.kills && i + 1 == all.size();
    const bool good = all[i]->over && (expected || all[i]->status == 0 || !plan.launcher.empty());
    if (!good) {
      ++result.failures;
      result.lines.push_back("rank " + std::to_string(i) + " " + (all[i]->over ? text_of_ending(all[i]->status) : "hangs"));
    }
    if (result.failures)
      for (const std::string& said : {all[i]->texts[1], all[i]->texts[2]})
        if (!said.empty()) result.lines.push_back("it printed: " + said.substr(0, 300));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}
}  // namespace

bool is_communicator(const std::string& path) {
  return fs::path(path).filename().string().starts_with("libplugrad-communicator-");
}

std::vector<std::string> communicator_checks() {
  std::vector<std::string> names;
  for (const CommunicatorCheck& each : all_communicator_checks()) names.emplace_back(each.name);
  return names;
}

Summary check_communicator(const CommunicatorPlan& plan) {
  const plugrad_communicator& table = load_communicator(plan.file);
  const bool launches = table.capabilities & PLUGRAD_COMM_LAUNCHES;
  if (launches && plan.launcher.empty())
    throw Unloadable(plan.file + ": its engine has a launcher of its own: add, for example, --launcher 'mpirun -n 3'");
  Summary summary;
  summary.plugin = plan.file;
  summary.backend = table.name;
  summary.version = table.version;
  summary.device = plan.launcher.empty() ? std::to_string(kRanks) + " ranks" : "the ranks of " + plan.launcher;
  summary.whole = false;
  for (const CommunicatorCheck& each : all_communicator_checks()) {
    if (!plan.only.empty() && std::ranges::find(plan.only, each.name) == plan.only.end()) continue;
    summary.found.push_back({each.name, run_check(plan, each), false});
  }
  return summary;
}

int run_rank(const std::string& check, const std::string& file, const OptionList& options) {
  const char *folder = std::getenv(kFolder), *own = std::getenv(kRank);
  const auto& all = all_communicator_checks();
  const auto found = std::ranges::find(all, check, [](const CommunicatorCheck& each) { return std::string(each.name); });
  if (!folder || found == all.end()) return 2;
  const plugrad_communicator& table = load_communicator(file);
  Rank rank(table, options, own ? folder : "", own ? std::atoi(own) : -1, own ? kRanks : -1);
  try {
    found->run(rank);
  } catch (const std::exception& error) {
    rank.expect(false, error.what());
  }
  write_result(folder, rank);
  const bool finishes = table.finish && !check.ends_with("time_out") && !check.ends_with("abort");
  if (rank.failures.empty() && finishes) table.finish();
  else if (!own) wait_for_results(folder, rank.size());
  _exit(0);  // what a broken group left in the engine is not waited for
}

}  // namespace plugrad::conformance
