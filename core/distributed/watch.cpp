#include <core/distributed/watch.hpp>

#include <plugrad/runtime/error.hpp>
#include <plugrad/sdk/threads.hpp>
#include <process/file_text.hpp>

#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace plugrad::distributed {
using std::chrono::milliseconds;
using std::chrono::steady_clock;
namespace {
constexpr milliseconds kLook{100}, kBeat{500};
// Ranks that do not write a beat for so long have stopped.
constexpr milliseconds kSilence{1900};
constexpr milliseconds kVote{600};
// A rank that dies closes its connections some time before its end can be seen.
constexpr milliseconds kEnding{400};
constexpr size_t kHistory = 32;

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// The same for two processes that see each other in /proc: of one start of one machine, and not of two containers.
std::string process_space() {
  char link[64] = "";
  if (readlink("/proc/self/ns/pid", link, sizeof link - 1) <= 0) return "";
  std::string start = file_text("/proc/sys/kernel/random/boot_id").value_or("");
  std::erase(start, '\n');
  return link + start;
}

struct ProcessInfo {
  char state = 0;
  uint64_t started = 0;
};
// From /proc/PID/stat, whose second field may contain blanks and brackets.
std::optional<ProcessInfo> process_info(int64_t process) {
  const auto text = file_text("/proc/" + std::to_string(process) + "/stat");
  const size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text->substr(name_end + 1));
  ProcessInfo info;
  fields >> info.state;
  std::string skipped;
  for (int i = 4; i < 22; ++i) fields >> skipped;
  fields >> info.started;
  return fields ? std::optional(info) : std::nullopt;
}

bool is_dead(const Beat& beat) {
  const auto info = process_info(beat.process);
  return !info || info->state == 'Z' || info->state == 'X' || info->started != beat.started;
}

void append(std::string& list, const std::string& more) {
  if (!more.empty()) list += (list.empty() ? "" : "; ") + more;
}

std::string place_of(const Call& call) {
  if (!call.number) return "before its first collective";
  return (call.active ? "in collective " : "after collective ") + std::to_string(call.number) + " (" + call.what + ")";
}
}  // namespace

std::string Beat::text() const {
  std::ostringstream out;
  out << host << '\n'
      << space << '\n'
      << process << '\n'
      << started << '\n'
      << count << '\n'
      << call.group << '\n'
      << call.number << '\n'
      << call.active << '\n'
      << call.what << '\n';
  return std::move(out).str();
}

std::optional<Beat> Beat::parse(const std::string& text) {
  std::istringstream in(text);
  Beat beat;
  std::string rest;
  std::getline(in, beat.host);
  std::getline(in, beat.space);
  in >> beat.process >> beat.started >> beat.count;
  std::getline(in, rest);
  std::getline(in, beat.call.group);
  in >> beat.call.number >> beat.call.active;
  std::getline(in, rest);
  std::getline(in, beat.call.what);
  return in ? std::optional(beat) : std::nullopt;
}

Watch::Watch(Store& store, int rank, int size, std::function<void(const std::string&)> failed)
    : store_(store), rank_(rank), size_(size), failed_(std::move(failed)), neighbours_(static_cast<size_t>(size)) {
  mine_.host = host_name();
  mine_.space = process_space();
  mine_.process = getpid();
  mine_.started = process_info(mine_.process).value_or(ProcessInfo{}).started;
  beat();
  const BlockedSignals blocked;
  thread_ = std::thread([this] { watch(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watch::note(const Call& call) {
  const std::lock_guard lock(mutex_);
  if (call.active) history_.push_back(call);
  if (history_.size() > kHistory) history_.pop_front();
  mine_.call = call;
}

void Watch::beat() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    ++mine_.count;
    text = mine_.text();
  }
  store_.replace("beat." + std::to_string(rank_), text);
}

void Watch::watch() {
  pthread_setname_np(pthread_self(), "plugrad-watch");
  auto next = steady_clock::now() + kBeat;
  const auto stops = [&] {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, kLook, [&] { return stops_; });
  };
  while (!stops()) {
    try {
      if (steady_clock::now() >= next) {
        beat();
        next += kBeat;
      }
      std::string cause = known_cause();
      if (cause.empty()) cause = dead_ranks();
      if (cause.empty()) continue;
      return failed_(accuse(cause));
    } catch (const Error& error) {  // the store cannot be reached
      return lost_store(error.what());
    }
  }
}

// Rank 0 may end, and its store with it, once this rank has left.
void Watch::lost_store(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (stops_ || leaves_) return;
  }
  failed_(why);
}

std::optional<Beat> Watch::beat_of(int rank) {
  const auto text = store_.get("beat." + std::to_string(rank));
  return text ? Beat::parse(*text) : std::nullopt;
}

bool Watch::has_left(int rank) { return store_.get("left." + std::to_string(rank)).has_value(); }

void Watch::leave() {
  Call last;
  {
    const std::lock_guard lock(mutex_);
    leaves_ = true;
    last = mine_.call;
  }
  store_.set("left." + std::to_string(rank_), place_of(last));
}

std::string Watch::wait_for_leaving(milliseconds most) {
  const auto end = steady_clock::now() + most;
  for (int i = 0; i < size_; ++i) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    if (!store_.wait("left." + std::to_string(i), std::max(left, milliseconds(1)))) break;
  }
  return known_cause();
}

bool Watch::all_left() {
  for (int i = 0; i < size_; ++i)
    if (!has_left(i)) return false;
  return true;
}

std::string Watch::accuse(const std::string& cause) {
  try {
    store_.set(kFailed, cause);
    return store_.get(kFailed).value_or(cause);
  } catch (const Error&) {  // the store cannot be reached: no other rank can tell more
    return cause;
  }
}

std::string Watch::name_of(int rank, const Beat& beat) const {
  return "rank " + std::to_string(rank) + " (process " + std::to_string(beat.process) + " on " + beat.host + ")";
}

std::string Watch::known_cause() { return store_.get(kFailed).value_or(""); }

// Of ranks on this host. A launcher knows how a process ended, so its words come first.
std::string Watch::dead_ranks() {
  const std::lock_guard lock(looks_);
  std::string text;
  for (int i = 0; i < size_; ++i) {
    if (i == rank_) continue;
    std::optional<Beat>& beat = neighbours_[static_cast<size_t>(i)];
    if (!beat) beat = beat_of(i);
    if (!beat || beat->host != mine_.host || beat->space != mine_.space || !is_dead(*beat) || has_left(i)) continue;
    const Beat last = beat_of(i).value_or(*beat);
    append(text, name_of(i, last) + " is dead; it was last seen " + place_of(last.call));
  }
  if (text.empty()) return "";
  const auto said = store_.wait(kFailed, milliseconds(60));
  return said.value_or(text);
}

std::string Watch::ranks_that_left() {
  std::string text;
  for (int i = 0; i < size_; ++i)
    if (const auto last = i == rank_ ? std::nullopt : store_.get("left." + std::to_string(i)))
      append(text,
             "rank " + std::to_string(i) + " has left the group " + *last + ": all ranks must do the same number of steps");
  return text;
}

// Ranks that call something else under the number of a collective of this rank.
std::string Watch::ranks_that_differ() {
  std::deque<Call> history;
  {
    const std::lock_guard lock(mutex_);
    history = history_;
  }
  std::string text;
  for (int i = 0; i < size_; ++i) {
    const auto beat = i == rank_ ? std::nullopt : beat_of(i);
    if (!beat || !beat->call.active) continue;
    const Call& there = beat->call;
    const auto here = std::ranges::find_if(
        history, [&](const Call& each) { return each.group == there.group && each.number == there.number; });
    if (here == history.end() || here->what == there.what) continue;
    append(text, "rank " + std::to_string(rank_) + " calls " + here->what + " as collective " +
                     std::to_string(here->number) + ", but rank " + std::to_string(i) + " calls " + there.what +
                     ": all ranks must call the same in the same order");
  }
  return text;
}

std::string Watch::silent_ranks(const Ask& ask) {
  const auto begin = steady_clock::now();
  std::vector<std::optional<Beat>> before(static_cast<size_t>(size_));
  for (int i = 0; i < size_; ++i) before[static_cast<size_t>(i)] = beat_of(i);
  std::vector<uint8_t> silent(static_cast<size_t>(size_));
  const bool asked = ask(silent);
  std::this_thread::sleep_until(begin + kSilence);
  std::string text, busy, stuck;
  Call here;
  {
    const std::lock_guard lock(mutex_);
    here = mine_.call;
  }
  for (int i = 0; i < size_; ++i) {
    const auto &was = before[static_cast<size_t>(i)], now = beat_of(i);
    if (i == rank_ || !was || !now || has_left(i)) continue;
    const bool is_behind = now->call.group == here.group && now->call.number < here.number;
    if (now->count == was->count) append(text, name_of(i, *now) + " gives no sign; it was last seen " + place_of(now->call));
    else if (is_behind) append(now->call.active ? stuck : busy, name_of(i, *now) + " lags behind, " + place_of(now->call));
  }
  if (text.empty()) text = busy;  // in no collective, so no message can be missing
  if (text.empty() && asked) text = vote(silent);
  return text.empty() ? stuck : text;
}

// All ranks that reach the store vote on who does not answer.
std::string Watch::vote(const std::vector<uint8_t>& silent) {
  store_.replace("silent." + std::to_string(rank_), std::string(silent.begin(), silent.end()));
  std::this_thread::sleep_for(kVote);
  std::vector<int> votes(silent.size());
  int voters = 0;
  for (int i = 0; i < size_; ++i) {
    const auto other = store_.get("silent." + std::to_string(i));
    if (!other || other->size() != silent.size()) continue;
    ++voters;
    for (size_t k = 0; k < votes.size(); ++k) votes[k] += (*other)[k];
  }
  if (2 * voters <= size_) return "most ranks do not answer: this one may be cut off";
  std::string text;
  for (int i = 0; i < size_; ++i)
    if (const int against = votes[static_cast<size_t>(i)]; 2 * against > voters)
      append(text, "rank " + std::to_string(i) + " does not answer " + std::to_string(against) + " of the " +
                       std::to_string(voters) + " ranks that asked");
  return text;
}

std::string Watch::find_ended() {
  const auto soon = steady_clock::now() + kEnding;
  do {
    for (const auto look : {&Watch::known_cause, &Watch::dead_ranks})
      if (const std::string cause = (this->*look)(); !cause.empty()) return accuse(cause);
    std::this_thread::sleep_for(milliseconds(10));
  } while (steady_clock::now() < soon);
  return "";
}

std::string Watch::find_cause(bool timed_out, const Ask& ask) {
  try {
    beat();
    const auto soon = steady_clock::now() + (timed_out ? milliseconds(20) : kEnding);
    do {
      for (const auto look : {&Watch::known_cause, &Watch::dead_ranks, &Watch::ranks_that_left, &Watch::ranks_that_differ})
        if (const std::string cause = (this->*look)(); !cause.empty()) return accuse(cause);
      std::this_thread::sleep_for(milliseconds(10));
    } while (steady_clock::now() < soon);
    std::string cause = silent_ranks(ask);
    if (cause.empty()) cause = known_cause();
    return cause.empty() ? "which rank is lost is unknown" : accuse(cause);
  } catch (const Error& error) {  // the store cannot be reached
    return error.what();
  }
}

}  // namespace plugrad::distributed
