#include <core/distributed/group.hpp>

#include <core/distributed/composition.hpp>
#include <core/runtime/fnv.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <plugrad/sdk/dtypes.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

namespace plugrad::distributed {
namespace {
const char* name_of_kind(uint32_t kind) {
  constexpr const char* kNames[] = {"",           "barrier",    "broadcast", "all_reduce", "reduce_scatter",
                                    "all_gather", "all_to_all", "send",      "recv"};
  return kNames[kind < std::size(kNames) ? kind : 0];
}

uint64_t mixed(std::initializer_list<uint64_t> words) {
  Fnv hash;
  for (const uint64_t each : words) hash.add(each);
  return hash.value();
}

bool checks_calls() {
  static const bool on = [] {
    const char* text = platform::environment("PLUGRAD_DISTRIBUTED_CHECK");
    return text && *text && std::string_view(text) != "0";
  }();
  return on;
}

std::exception_ptr pointer_to(const Error& error) { return std::make_exception_ptr(error); }
}  // namespace

std::string Request::text() const {
  std::string what = name_of_kind(kind);
  if (kind == PLUGRAD_COLL_BARRIER) return what;
  if (kind == PLUGRAD_COLL_ALL_TO_ALL && !counts.empty())
    return what + " of uneven parts of " + dtype_name(static_cast<DType>(dtype));
  constexpr const char* kHow[] = {"", "", "minimum", "maximum", "product"};
  std::string more = kind == PLUGRAD_COLL_BROADCAST ? " from rank " + std::to_string(peer) : kHow[how];
  if (average) more = "average";
  if (ordered) more += more.empty() ? "ordered" : ", ordered";
  what += " of " + std::to_string(count) + " " + dtype_name(static_cast<DType>(dtype));
  return kind == PLUGRAD_COLL_BROADCAST ? what + more : more.empty() ? what : what + " (" + more + ")";
}

void WorkState::end(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex);
    ended = true;
    error = std::move(why);
  }
  changed.notify_all();
}

void WorkState::order() {
  {
    const std::lock_guard lock(mutex);
    in_order = true;
  }
  changed.notify_all();
}

GroupState::GroupState(std::shared_ptr<Job> job, plugrad_group* handle, int rank, std::vector<int> ranks, std::string name)
    : job_(std::move(job)), handle_(handle), rank_(rank), size_(static_cast<int>(ranks.size())), ranks_(std::move(ranks)),
      name_(std::move(name)), process_(getpid()), sent_(ranks_.size()), received_(ranks_.size()) {}

GroupState::GroupState(std::shared_ptr<Job> job)
    : GroupState(
          job, job->world(), job->rank(),
          [&] {
            std::vector<int> ranks(static_cast<size_t>(job->size()));
            std::iota(ranks.begin(), ranks.end(), 0);
            return ranks;
          }(),
          "all") {}

int GroupState::member(int rank, const char* what) const {
  const auto found = std::ranges::find(ranks_, rank);
  if (found != ranks_.end()) return static_cast<int>(found - ranks_.begin());
  throw Error(Code::invalid, "[" + std::string(what) + "] rank " + std::to_string(rank) + " is not in this group of " +
                                 std::to_string(size_) + " ranks");
}

std::shared_ptr<GroupState> GroupState::split(const std::vector<int>& ranks) {
  const bool is_in = std::ranges::find(ranks, ranks_[static_cast<size_t>(rank_)]) != ranks.end();
  plugrad_group* part = nullptr;
  int rank = -1, size = -1;
  std::exception_ptr error;
  std::string name;
  Engine& engine = job_->engine();
  engine.call([&] {
    const uint64_t number = ++splits_;
    name = name_ + "." + std::to_string(number);
    const Call call{name_, number_, "new_group of " + std::to_string(ranks.size()) + " ranks", true};
    try {
      job_->require_whole("new_group");
    } catch (const Error& why) {
      return void(error = pointer_to(why));
    }
    job_->note(call);
    const auto divide = [&](plugrad_group** made, int32_t* r, int32_t* s) {
      return engine.table().split(handle_, is_in ? 0 : -1, number, made, r, s);
    };
    const Ending ending = engine.make_group(divide, part, rank, size);
    if (ending.status) error = pointer_to(job_->fail({"", 0, "new_group", true}, size_, ending));
    else if (part) job_->add(part);
  });
  if (error) {
    job_->tell();
    std::rethrow_exception(error);
  }
  if (is_in && size != static_cast<int>(ranks.size()))
    throw Error(Code::invalid, "[new_group] this rank names " + std::to_string(ranks.size()) + " ranks, but " +
                                   std::to_string(size) + " ranks name themselves: give the same list on all ranks");
  if (!is_in) return nullptr;
  return std::shared_ptr<GroupState>(new GroupState(job_, part, rank, ranks, name));
}

void GroupState::submit(Request request, const std::shared_ptr<WorkState>& work) {
  if (getpid() != process_)
    throw Error(Code::device_lost, "[" + request.text() +
                                       "] this process was forked from the rank: start ranks as programs "
                                       "of their own, as `plugrad launch` does");
  require_whole(request.text());
  work->job = job_;
  const observe::Event starting(EventKind::exchange, profiling::is_on() ? (request.text() + ", start").c_str() : "",
                                nullptr);
  Engine& engine = job_->engine();
  if (request.is_message() && !engine.table().test)
    work->complete = [&engine, owner = work.get()] { engine.call([&] { engine.complete(owner); }); };
  engine.post([self = shared_from_this(), request = std::move(request), work] { self->execute(request, work); });
}

void GroupState::require_whole(const std::string& what) const {
  if (!job_->broken()) return;
  job_->tell();
  throw job_->error(what);
}

plugrad_collective GroupState::collective_of(const Request& request) {
  plugrad_collective c{};
  c.struct_size = sizeof c;
  c.kind = request.kind;
  c.from = request.from;
  c.to = request.to;
  c.count = request.count;
  c.counts = request.counts.empty() ? nullptr : request.counts.data();
  c.dtype = request.dtype;
  c.item = static_cast<uint32_t>(element_size(request.dtype));
  const bool averages = job_->engine().table().capabilities & PLUGRAD_COMM_AVERAGES;
  c.how = averages && request.average && !request.ordered ? uint32_t{PLUGRAD_REDUCE_AVERAGE} : request.how;
  c.peer = request.peer;
  c.stream = request.stream;
  c.device = request.device;
  if (request.is_message()) {
    c.number = ++(request.kind == PLUGRAD_COLL_SEND ? sent_ : received_)[static_cast<size_t>(request.peer)];
    c.fingerprint = mixed({c.number, PLUGRAD_COLL_SEND, c.dtype, c.count});
  } else {
    c.number = ++number_;
    c.fingerprint = mixed({c.number, c.kind, c.dtype, c.how, c.counts ? 0 : c.count});
  }
  return c;
}

Call GroupState::call_of(const Request& request, bool active) const { return {name_, number_, request.text(), active}; }

void GroupState::execute(const Request& request, const std::shared_ptr<WorkState>& work) {
  try {
    job_->require_whole(request.text());
    if (request.is_message()) return exchange(request, work);
    if (checks_calls() && size_ > 1) check_same(request);
    if (request.stream) return start_on_device(request, work);
    const plugrad_collective c = collective_of(request);
    if (size_ == 1) {
      execute_alone(request);
      return work->end({});
    }
    job_->note(call_of(request, true));
    const Ending ending = reduce(c, request);
    if (ending.status) throw job_->fail(call_of(request, true), size_, ending);
    job_->note(call_of(request, false));
    work->end({});
  } catch (...) {
    if (job_->engine().table().test && job_->broken()) leave_to_engine(work);
    work->end(std::current_exception());
  }
}

// The only rank of a group has all results.
void GroupState::execute_alone(const Request& request) {
  const bool copies = request.kind != PLUGRAD_COLL_BARRIER && request.from && request.to && request.from != request.to;
  const uint64_t count = request.counts.empty() ? request.count : request.counts[0];
  if (copies && count) std::memcpy(request.to, request.from, count * element_size(request.dtype));
}

Ending GroupState::reduce(const plugrad_collective& c, const Request& request) {
  if (!c.count && !c.counts && c.kind != PLUGRAD_COLL_BARRIER) return {};
  const observe::Event exchanging(EventKind::exchange, profiling::is_on() ? request.text().c_str() : "", nullptr,
                                  c.count * element_size(request.dtype));
  const Composer composer{job_->engine(), handle_, rank_, size_, job_->launch().timeout, [this] { return job_->broken(); }};
  const bool reduces = c.kind == PLUGRAD_COLL_ALL_REDUCE || c.kind == PLUGRAD_COLL_REDUCE_SCATTER;
  const bool divides = request.average && c.how != PLUGRAD_REDUCE_AVERAGE;
  // The sum of halves may overflow where their mean does not.
  const bool wide = divides && accumulator_of(static_cast<DType>(c.dtype)) != static_cast<DType>(c.dtype);
  if (reduces && (request.ordered || wide)) return composer.reduce(c, request.average);
  const Ending ending = composer.run(c);
  if (!ending.status && divides) divide(request.dtype, c.to, c.count, size_);
  return ending;
}

void GroupState::exchange(const Request& request, const std::shared_ptr<WorkState>& work) {
  const plugrad_collective c = collective_of(request);
  const Call call{name_, 0,
                  request.text() + (c.kind == PLUGRAD_COLL_SEND ? " to rank " : " of rank ") +
                      std::to_string(ranks_[static_cast<size_t>(request.peer)]),
                  false};
  fly(c, call, work);
}

// The device, and no thread, waits for the other ranks.
void GroupState::start_on_device(const Request& request, const std::shared_ptr<WorkState>& work) {
  const plugrad_collective c = collective_of(request);
  const observe::Event starting(EventKind::exchange, profiling::is_on() ? request.text().c_str() : "", nullptr,
                                c.count * c.item);
  job_->note(call_of(request, true));
  fly(c, call_of(request, true), work);
}

// Starts a work without a wait: the communication thread goes on with its tasks, and ends the work later.
void GroupState::fly(const plugrad_collective& c, Call call, const std::shared_ptr<WorkState>& work) {
  if (!c.count && !c.counts) return work->end({});
  const auto ended = [self = shared_from_this(), work, call = std::move(call)](const Ending& ending) {
    if (call.number == self->number_) self->job_->note({call.group, call.number, call.what, false});
    if (!ending.status) return work->end({});
    if (self->job_->engine().table().test) leave_to_engine(work);
    work->end(pointer_to(self->job_->fail(call, self->size_, ending)));
  };
  const auto deadline = Engine::Clock::now() + job_->launch().timeout;
  const Ending started = job_->engine().start(
      {handle_, nullptr, deadline, [this] { return job_->broken(); }, ended, work.get(), c.stream != nullptr}, c);
  if (started.status) return ended(started);
  if (c.stream) work->order();
}

// PLUGRAD_DISTRIBUTED_CHECK: the ranks compare what they are about to do, so that a difference is an error of all at once.
void GroupState::check_same(const Request& request) {
  constexpr size_t kSize = 128;
  std::vector<char> mine(kSize), all(kSize * static_cast<size_t>(size_));
  request.text().copy(mine.data(), kSize - 1);
  const Request compared{PLUGRAD_COLL_ALL_GATHER, PLUGRAD_U8, mine.data(), all.data(), kSize};
  const Composer composer{job_->engine(), handle_, rank_, size_, job_->launch().timeout, [this] { return job_->broken(); }};
  const Call call = call_of(request, true);
  if (const Ending ending = composer.run(collective_of(compared)); ending.status) throw job_->fail(call, size_, ending);
  for (int i = 0; i < size_; ++i) {
    const char* other = all.data() + kSize * static_cast<size_t>(i);
    if (!std::strcmp(other, mine.data())) continue;
    throw Error(Code::invalid, "[" + std::string(name_of_kind(request.kind)) + "] rank " + std::to_string(rank_) +
                                   " calls " + mine.data() + ", but rank " + std::to_string(i) + " calls " + other +
                                   ": all ranks of a group must call the same in the same order");
  }
}

}  // namespace plugrad::distributed
