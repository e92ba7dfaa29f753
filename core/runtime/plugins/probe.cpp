#include <core/runtime/plugins/probe.hpp>

#include <core/runtime/dispatch/printable.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <core/runtime/plugins/verdicts.hpp>
#include <plugrad/runtime/log.hpp>
#include <process/child.hpp>

#include <sys/random.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>

namespace plugrad::probe {
using std::chrono::seconds;
namespace {

enum class Mode { off, cached, always };
Mode mode() {
  const char* text = platform::environment("PLUGRAD_PROBE");
  const std::string_view wanted = text ? text : "cached";
  if (wanted == "off") return Mode::off;
  if (wanted == "always") return Mode::always;
  if (wanted != "cached")
    log(LogLevel::warning, "PLUGRAD_PROBE='" + std::string(wanted) + "': always, cached or off expected; taken as cached");
  return Mode::cached;
}

}  // namespace

// A driver may take long to find its devices.
seconds deadline(Depth depth) {
  const seconds usual(depth == Depth::load || depth == Depth::communicator ? 10 : 60);
  const char* text = platform::environment("PLUGRAD_PROBE_SECONDS");
  if (!text) return usual;
  int wanted = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), wanted);
  if (error == std::errc() && !*end && wanted > 0 && wanted <= 3600) return seconds(wanted);
  log(LogLevel::warning, std::string("PLUGRAD_PROBE_SECONDS='") + text + "': a number from 1 to 3600 expected; ignored");
  return usual;
}

namespace {
uint64_t random_number() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return number;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

const char* what_ran(Step step) {
  constexpr const char* kWhat[] = {"while its file was loaded", "while its symbol was looked up", "in its entry function",
                                   "in its function count",     "in its function open",           "when the process ended",
                                   "when the process ended"};
  return kWhat[std::min<size_t>(static_cast<size_t>(step), std::size(kWhat) - 1)];
}

// The child's standard error, as one line.
std::string one_line(const std::string& errors) {
  std::string line = printable(errors.substr(0, errors.find_last_not_of(" \n") + 1), 300);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

struct Found {
  Outcome outcome;
  bool fault = false;  // crashed, hung or ended the process
  bool probed = true;  // false: no child could be started
};

struct Heard {
  Record last;  // the last record with the nonce
  bool timed_out = false;
  std::optional<int> status;
  std::string errors;
};

// Takes the whole records off the bytes: a plugin may write as many as it likes.
void listen(std::string& bytes, Record& last) {
  size_t taken = 0;
  for (; bytes.size() - taken >= sizeof(Record); taken += sizeof(Record)) {
    Record record;
    std::memcpy(&record, bytes.data() + taken, sizeof record);
    if (record.nonce == last.nonce && record.step >= last.step && record.step <= Step::done && !last.refused) last = record;
  }
  bytes.erase(0, taken);
  last.reason[sizeof last.reason - 1] = 0;
}

// Waits for the end of the child, for the time of its deadline at most.
Heard heard(Child& child, uint64_t nonce, seconds limit) {
  Heard all{{nonce, Step::load, 0, {}}, false, {}, {}};
  std::array<std::string, 3> texts;
  const auto end = std::chrono::steady_clock::now() + limit;
  // The streams close when the child ends, unless a child of its own keeps them open: so we also poll for its end.
  for (bool over = false; !over;) {
    const size_t before = texts[0].size() + texts[2].size();
    child.read(std::chrono::milliseconds(child.is_open(Child::Stream::records) ? 50 : 1), texts);
    texts[1].clear();
    if (texts[0].size() + texts[2].size() == before) over = child.ended(all.status);
    listen(texts[0], all.last);
    all.timed_out = !over && std::chrono::steady_clock::now() >= end;
    over |= all.timed_out;
  }
  all.errors = std::move(texts[2]);
  return all;
}

// The depth, and the probe's arguments behind the path.
struct Trial {
  Depth depth;
  std::vector<std::string> words = {};
};

Found run(const std::string& path, const Trial& trial) {
  const std::string program = std::filesystem::path(platform::core_file()).parent_path() / "plugrad" / "plugrad-probe";
  const uint64_t nonce = random_number();
  const seconds limit = deadline(trial.depth);
  std::vector<std::string> command{program, std::to_string(Child::kRecords), std::to_string(nonce),
                                   std::to_string(static_cast<uint32_t>(trial.depth)), path};
  command.insert(command.end(), trial.words.begin(), trial.words.end());
  Child child;
  if (const std::string why = child.start(command); !why.empty())
    return {{false, Step::load, "cannot start " + program + ": " + why}, false, false};
  const Heard all = heard(child, nonce, limit);
  if (all.last.refused) return {{false, all.last.step, all.last.reason}, false, true};
  if (all.last.step == Step::done && !all.timed_out && !all.status.value_or(0)) return {};
  const std::string how =
      all.timed_out ? "did not finish within " + std::to_string(limit.count()) + " s" : text_of_ending(all.status);
  const std::string said = one_line(all.errors);
  return {
      {false, all.last.step, "it " + how + " " + what_ran(all.last.step) + (said.empty() ? "" : ": " + said)}, true, true};
}

Outcome quarantined(Step step, const std::string& fault) {
  return {false, step,
          fault + "; it is in quarantine until the file changes or you run: plugrad backends --clear-quarantine"};
}

Outcome check_trial(const std::string& path, const FileIdentity& identity, const Trial& trial,
                    const std::function<bool&(verdicts::Verdict&)>& passed) {
  const Mode wanted = mode();
  if (wanted == Mode::off) return {};
  verdicts::Verdict known = verdicts::read(path, identity);
  if (wanted == Mode::cached) {
    if (!known.fault.empty()) return quarantined(Step::load, known.fault);
    if (passed(known)) return {};
  }
  const Found found = run(path, trial);
  if (!found.probed && wanted == Mode::cached) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
      log(LogLevel::warning, "plugins are loaded without being tried first: " + found.outcome.reason +
                                 ". PLUGRAD_PROBE=off turns off the trial and this warning");
    return {};
  }
  if (!found.fault && !found.outcome.sound) return found.outcome;
  known.fault = found.fault ? found.outcome.reason + " (" + today() + ")" : "";
  if (found.outcome.sound) passed(known) = true;
  verdicts::write(known);
  return found.fault ? quarantined(found.outcome.step, known.fault) : found.outcome;
}
}  // namespace

Outcome check(const std::string& path, const FileIdentity& identity, Depth depth) {
  return check_trial(path, identity, {depth}, [depth](verdicts::Verdict& known) -> bool& {
    return depth == Depth::count ? known.counts : known.loads;
  });
}

Outcome check_open(const std::string& path, const FileIdentity& identity, uint32_t device,
                   const std::vector<std::pair<std::string, std::string>>& options) {
  Trial trial{Depth::open, {std::to_string(device)}};
  for (const auto& [key, value] : options) trial.words.insert(trial.words.end(), {key, value});
  return check_trial(path, identity, trial, [device](verdicts::Verdict& known) -> bool& { return known.opens[device]; });
}

}  // namespace plugrad::probe
