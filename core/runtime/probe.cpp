#include <core/runtime/probe.hpp>

#include <core/runtime/child.hpp>
#include <core/runtime/platform.hpp>
#include <core/runtime/verdicts.hpp>
#include <plugrad/runtime/log.hpp>

#include <sys/random.h>
#include <sys/wait.h>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>

namespace plugrad::probe {
namespace {
using std::chrono::seconds;

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

// A driver may take long to find its devices.
seconds deadline(Depth depth) {
  const seconds usual(depth == Depth::count ? 60 : 10);
  const char* text = platform::environment("PLUGRAD_PROBE_SECONDS");
  if (!text) return usual;
  int wanted = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), wanted);
  if (error == std::errc() && !*end && wanted > 0 && wanted <= 3600) return seconds(wanted);
  log(LogLevel::warning, std::string("PLUGRAD_PROBE_SECONDS='") + text + "': a number from 1 to 3600 expected; ignored");
  return usual;
}

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
                                   "in its function count",     "when the process ended",         "when the process ended"};
  return kWhat[std::min<size_t>(static_cast<size_t>(step), std::size(kWhat) - 1)];
}

// Keeps one line of ASCII of at most 300 characters: a plugin wrote it.
std::string quoted(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  text.resize(std::min<size_t>(text.size(), 300));
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, ' ');
  return text;
}

std::string how_it_ended(const Child::Ending& ending, seconds limit) {
  if (ending.timed_out) return "did not finish within " + std::to_string(limit.count()) + " s";
  if (!ending.status) return "ended the process";
  if (WIFEXITED(*ending.status)) return "ended the process with status " + std::to_string(WEXITSTATUS(*ending.status));
  const char* name = sigabbrev_np(WTERMSIG(*ending.status));
  return "crashed with " + (name ? "SIG" + std::string(name) : "signal " + std::to_string(WTERMSIG(*ending.status)));
}

struct Found {
  Outcome outcome;
  bool fault = false;  // crashed, hung or ended the process
  bool probed = true;  // false: no child could be started
};

Found run(const std::string& path, Depth depth) {
  const std::string program = std::filesystem::path(platform::core_file()).parent_path() / "plugrad" / "plugrad-probe";
  const uint64_t nonce = random_number();
  const seconds limit = deadline(depth);
  Child child;
  if (const std::string why = child.start({program, std::to_string(Child::kPipe), std::to_string(nonce),
                                           std::to_string(static_cast<uint32_t>(depth)), path});
      !why.empty())
    return {{false, Step::load, "cannot start " + program + ": " + why}, false, false};
  Record last{nonce, Step::load, 0, {}};
  const Child::Ending ending = child.run(limit, sizeof(Record), [&](const char* bytes) {
    Record record;
    std::memcpy(&record, bytes, sizeof record);
    if (record.nonce == nonce && record.step >= last.step && record.step <= Step::done && !last.refused) last = record;
  });
  last.reason[sizeof last.reason - 1] = 0;
  if (last.refused) return {{false, last.step, last.reason}, false, true};
  const bool clean = !ending.timed_out && (!ending.status || (WIFEXITED(*ending.status) && !WEXITSTATUS(*ending.status)));
  if (last.step == Step::done && clean) return {};
  const std::string said = quoted(ending.errors);
  return {{false, last.step,
           "it " + how_it_ended(ending, limit) + " " + what_ran(last.step) + (said.empty() ? "" : ": " + said)},
          true,
          true};
}

Outcome quarantined(Step step, const std::string& fault) {
  return {false, step,
          fault + "; it is in quarantine until the file changes or you run: plugrad backends --clear-quarantine"};
}
}  // namespace

Outcome check(const std::string& path, const FileIdentity& identity, Depth depth) {
  const Mode wanted = mode();
  if (wanted == Mode::off) return {};
  verdicts::Verdict known = verdicts::read(path, identity);
  if (wanted == Mode::cached) {
    if (!known.fault.empty()) return quarantined(Step::load, known.fault);
    if (depth == Depth::load ? known.loads : known.counts) return {};
  }
  const Found found = run(path, depth);
  if (!found.probed && wanted == Mode::cached) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
      log(LogLevel::warning, "plugins are loaded without being tried first: " + found.outcome.reason +
                                 ". PLUGRAD_PROBE=off turns off the trial and this warning");
    return {};
  }
  if (!found.fault && !found.outcome.sound) return found.outcome;
  known.fault = found.fault ? found.outcome.reason + " (" + today() + ")" : "";
  known.loads |= found.outcome.sound;
  known.counts |= found.outcome.sound && depth == Depth::count;
  verdicts::write(known);
  return found.fault ? quarantined(found.outcome.step, known.fault) : found.outcome;
}

}  // namespace plugrad::probe
