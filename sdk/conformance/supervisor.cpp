#include <sdk/conformance/supervisor.hpp>

#include <process/child.hpp>
#include <process/patience.hpp>
#include <sdk/conformance/result.hpp>
#include <sdk/conformance/sanitizer.hpp>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace plugrad::conformance {
namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A worker that has ended, crashed or hung.
struct Gone {
  std::string what;    // "crashed with SIGSEGV in op.EXP f32,f32 [dense]"
  std::string errors;  // its latest output on standard error
};

std::string last_part(const std::string& text, size_t most) {
  return text.size() > most ? "..." + text.substr(text.size() - most) : text;
}

// Returns a line of ASCII.
std::string shown(const std::string& text) {
  std::string line = text.substr(0, 120);
  std::ranges::replace_if(line, [](char c) { return c < ' ' || c > '~'; }, ' ');
  return "'" + line + (text.size() > line.size() ? "...'" : "'");
}

// A worker, seen from outside.
class Remote {
 public:
  explicit Remote(const Plan& plan) : plan_(plan) {
    if (const std::string why = child_.start(plan.worker, Child::Input::pipe); !why.empty())
      throw std::runtime_error("cannot start " + plan.worker[0] + ": " + why);
  }

  // Sends a command.
  void ask(const std::string& command) { child_.write(command + "\n"); }
  // Waits for a message of the given kinds, and treats all earlier messages. Throws Gone if the worker ends or hangs.
  Message wait_for(std::initializer_list<Say> kinds) {
    for (;;) {
      Message message = next();
      if (std::ranges::find(kinds, message.kind) != kinds.end()) return message;
      if (message.kind == Say::running) running_ = message.fields.at(0);
      if (message.kind == Say::changed) changes.push_back(message.fields.at(0));
      if (message.kind == Say::log && plan_.verbose) std::cerr << "log: " << message.fields.at(0) << "\n";
    }
  }
  // Returns the plugin's output since the last call.
  std::string printed() {
    child_.read(milliseconds(0), texts_);
    std::string all = std::exchange(texts_[1], {});
    return all + (kSanitized ? "" : std::exchange(texts_[2], {}));
  }
  // Ends the worker as a program ends. Throws Gone if it does not end well.
  void finish() {
    running_ = "exit with work in flight";
    ask("leave");
    child_.close_input();
    Patience patience(child_.process(), plan_.deadline);
    std::optional<int> status;
    while (!child_.ended(status)) {
      if (patience.is_over()) throw hung();
      child_.read(milliseconds(20), texts_);
    }
    if (status && *status) throw gone(text_of_ending(status));
  }
  const std::string& running() const { return running_; }

  std::vector<std::string> changes;  // of the process's state by the running case

 private:
  Gone gone(const std::string& how) {
    std::string errors = std::exchange(texts_[2], {});
    return {how + (running_.empty() ? "" : " in " + running_), std::move(errors)};
  }
  Gone hung() {
    child_.stop();
    return gone("gave no sign of life for " + std::to_string(plan_.deadline.count()) + " s");
  }
  Message next() {
    std::optional<Patience> patience;
    std::optional<int> status;
    for (bool over = false;;) {
      if (std::optional<Message> message = take_message(texts_[0])) return *message;
      if (over) throw gone(text_of_ending(status));
      if (!patience) patience.emplace(child_.process(), plan_.deadline);
      if (patience->is_over()) throw hung();
      const size_t before = texts_[0].size();
      child_.read(milliseconds(child_.is_open(Child::Stream::records) ? 50 : 1), texts_);
      if (texts_[0].size() == before) over = child_.ended(status);
      if (over) child_.read(milliseconds(0), texts_);
    }
  }

  const Plan& plan_;
  Child child_;
  std::array<std::string, 3> texts_;
  std::string running_ = "loading";
};

// The findings of several workers.
class Findings {
 public:
  Findings(const Plan& plan, Summary& summary) : plan_(plan), summary_(summary) {}

  // Returns the next case's place in the plan, or nothing.
  std::optional<size_t> next() {
    const std::scoped_lock lock(mutex_);
    const bool over = plan_.budget.count() && Clock::now() >= begun_ + plan_.budget;
    return next_ < plan_.cases.size() && !over ? std::optional(next_++) : std::nullopt;
  }
  void add(size_t place, Result result, Clock::time_point begun) {
    const std::scoped_lock lock(mutex_);
    result.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    results_[place] = std::move(result);
    progress(place);
  }
  // Adds a finding about the process of a case.
  void add_to(const std::string& name, const std::string& line) {
    const std::scoped_lock lock(mutex_);
    Result& result = process_[name];
    ++result.failures;
    if (result.lines.size() < kMostLines) result.lines.push_back(line);
  }
  void count_process() {
    const std::scoped_lock lock(mutex_);
    for (const char* name : {"process.output", "process.state", "process.end"}) process_[name];
    ++process_["process.output"].cases;
    ++process_["process.state"].cases;
  }
  void count_end() {
    const std::scoped_lock lock(mutex_);
    process_["process.end"].cases = 1;
  }
  void collect() {
    for (auto& [place, result] : results_) collect(name_of(place), std::move(result));
    for (; next_ < plan_.cases.size(); ++next_) summary_.not_begun.push_back(name_of(next_));
    for (auto& [name, result] : process_) collect(name, std::move(result));
    if (plan_.progress) std::cerr << "\r\033[K";
  }
  const std::string& name_of(size_t place) const { return all_cases()[plan_.cases[place]].name; }

 private:
  static constexpr size_t kMostLines = 20;

  void collect(const std::string& name, Result result) {
    std::ranges::move(result.matrix, std::back_inserter(summary_.matrix));
    result.matrix.clear();
    summary_.found.push_back({name, std::move(result), false});
  }
  void progress(size_t place) {
    if (plan_.progress)
      std::cerr << "\r\033[K[" << results_.size() << "/" << plan_.cases.size() << "] " << name_of(place) << std::flush;
  }

  const Plan& plan_;
  Summary& summary_;
  const Clock::time_point begun_ = Clock::now();
  std::mutex mutex_;
  size_t next_ = 0;
  std::map<size_t, Result> results_;
  std::map<std::string, Result> process_;
};

// Throws Unloadable or Breach if the worker reports an error before the first case. Returns whether there is a device.
bool greet(Remote& remote, Summary& summary) {
  const Message hello = remote.wait_for({Say::unusable, Say::breach, Say::no_device, Say::device});
  if (hello.kind == Say::unusable) throw Unloadable(hello.fields.at(0));
  if (hello.kind == Say::breach) throw Breach(hello.fields.at(0));
  summary.backend = hello.fields.at(0);
  summary.version = hello.fields.at(1);
  (hello.kind == Say::device ? summary.device : summary.no_device) = hello.fields.at(2);
  return hello.kind == Say::device;
}

void note_errors(const Gone& gone) {
  if (!gone.errors.empty()) std::cerr << last_part(gone.errors, 8000) << std::flush;
}

void run_one(Remote& remote, const Plan& plan, Findings& findings, size_t place) {
  const Clock::time_point begun = Clock::now();
  remote.changes.clear();
  remote.ask(std::to_string(plan.cases[place]));
  findings.add(place, result_in(remote.wait_for({Say::result})), begun);
  findings.count_process();
  const std::string& name = findings.name_of(place);
  if (const std::string text = remote.printed(); !text.empty())
    findings.add_to("process.output", name + ": the plugin printed " + shown(text));
  for (const std::string& changed : remote.changes)
    findings.add_to("process.state", name + ": the plugin changed " + changed);
}

// Runs cases until none is left. If a worker is gone, its case fails; the next worker takes the next case.
void run_cases(std::unique_ptr<Remote> remote, const Plan& plan, Findings& findings) {
  if (remote)
    for (const std::string& changed : remote->changes)
      findings.add_to("process.state", "loading, count and open: the plugin changed " + changed);
  while (const std::optional<size_t> place = findings.next()) {
    const Clock::time_point begun = Clock::now();
    try {
      if (!remote) {
        remote = std::make_unique<Remote>(plan);
        Summary ignored;
        greet(*remote, ignored);
      }
      run_one(*remote, plan, findings, *place);
    } catch (const Gone& gone) {
      note_errors(gone);
      findings.add(*place, {1, 1, 0, {"the process " + gone.what}, {}, {}}, begun);
      remote.reset();
    } catch (const std::exception& error) {
      findings.add(*place, {1, 1, 0, {error.what()}, {}, {}}, begun);
      remote.reset();
    }
  }
  if (!remote) return;
  findings.count_end();
  try {
    remote->finish();
  } catch (const Gone& gone) {
    note_errors(gone);
    findings.add_to("process.end", "the process " + gone.what);
  }
}

std::unique_ptr<Remote> first_worker(const Plan& plan, Summary& summary) {
  auto remote = std::make_unique<Remote>(plan);
  try {
    if (!greet(*remote, summary)) remote.reset();
  } catch (const Gone& gone) {
    note_errors(gone);
    throw Breach("the process " + gone.what);
  }
  return remote;
}

}  // namespace

Summary supervised(const Plan& plan, bool whole) {
  Summary summary;
  std::unique_ptr<Remote> first = first_worker(plan, summary);
  if (!first) return summary;
  if (whole) {
    first->ask("missing");
    summary.missing_of_tier0 = first->wait_for({Say::missing}).fields;
  }
  Findings findings(plan, summary);
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < std::min<size_t>(plan.jobs, plan.cases.size()); ++i)
    others.emplace_back([&] { run_cases(nullptr, plan, findings); });
  run_cases(std::move(first), plan, findings);
  others.clear();
  findings.collect();
  return summary;
}

std::string answer_of(const Plan& plan, const std::string& question) {
  Summary summary;
  const std::unique_ptr<Remote> remote = first_worker(plan, summary);
  if (!remote) return "there is no device: " + summary.no_device + "\n";
  try {
    remote->ask(question);
    return remote->wait_for({Say::text}).fields.at(0);
  } catch (const Gone& gone) {
    throw Breach("the process " + gone.what);
  }
}

}  // namespace plugrad::conformance
