// plugrad launch: starts the ranks of a job on this machine, and ends all of them when one fails.
#include <tools/launch/ranks.hpp>
#include <tools/plugrad/options.hpp>

#include <algorithm>
#include <iterator>

namespace plugrad::tool {
namespace {
constexpr int64_t kMostRanks = 4096;

// The words of the command line up to the program's name: options, and the values of options without `=`.
Arguments own_words(const Arguments& arguments) {
  auto end = arguments.begin();
  while (end != arguments.end() && end->starts_with('-') && *end != "--") {
    const bool takes_value = *end == "-n" || *end == "--ranks" || *end == "--grace";
    ++end;
    if (takes_value && end != arguments.end()) ++end;
  }
  return {arguments.begin(), end};
}

int64_t bounded(const Options& options, const char* name, int64_t least, int64_t most) {
  const std::optional<int64_t> value = options.whole(name);
  if (!value) throw UsageError(std::string("--") + name + " is missing (see plugrad launch --help)");
  if (*value >= least && *value <= most) return *value;
  throw UsageError(std::string("--") + name + " " + std::to_string(*value) + ": " + std::to_string(least) + " to " +
                   std::to_string(most) + " expected");
}
}  // namespace

int launch_command(const Arguments& arguments) {
  const Arguments own = own_words(arguments);
  Arguments program(arguments.begin() + std::ssize(own), arguments.end());
  if (!program.empty() && program.front() == "--") program.erase(program.begin());
  Options options("plugrad launch");
  options.add_whole("ranks,n", "N", "how many processes to start");
  options.add_whole("grace", "SECONDS", "how long the others may take to end after one failed", 5);
  options.parse(own);
  if (options.flag("help")) {
    options.print_help(
        {"plugrad launch -n N [--grace SECONDS] PROGRAM [ARGUMENT ...]",
         "Starts N processes of a program on this machine, which meet in plugrad.distributed. When one fails, "
         "the others end too. The status is the first failed process's: 128 and the signal's number if a "
         "signal ended it.",
         "  plugrad launch -n 2 python3 train.py\n  plugrad launch -n 4 ./train --steps 1000\n"});
    return 0;
  }
  const int64_t ranks = bounded(options, "ranks", 1, kMostRanks), grace = bounded(options, "grace", 0, 86400);
  if (program.empty()) throw UsageError("the program is missing: plugrad launch -n N PROGRAM (see plugrad launch --help)");
  return run_ranks(program, static_cast<int>(ranks), std::chrono::seconds(grace));
}

}  // namespace plugrad::tool
