// Collectives of tensors: checks, and host memory for tensors that an engine cannot reach.
#include <plugrad/distributed/collectives.hpp>

#include <core/distributed/group.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/write.hpp>
#include <core/runtime/observe/observer.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/ops/transfer.hpp>
#include <plugrad/runtime/policy.hpp>

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

namespace plugrad::distributed {
namespace {
constexpr std::chrono::microseconds kSpin{200};  // of a thread that waits, before it sleeps

// The elements of a tensor, row-major, in host memory: the tensor's own, or a copy.
class HostElements {
 public:
  // apart: another tensor that the engine uses at the same time, whose memory must not be x's.
  HostElements(const Tensor& x, bool reads, bool writes, const Tensor& apart = {}) : tensor_(x), writes_(writes) {
    const DeviceState& device = device_of(x);
    const bool overlaps = apart.defined() && storage_of(x) == storage_of(apart);
    is_direct_ = device.host_memory() && !device.compute && is_dense(view_of(x)) && !overlaps;
    if (is_direct_) {
      if (writes) raise_version(tensor_);
      memory_ = reinterpret_cast<char*>(view_of(x).buffer) + view_of(x).offset;
      return;
    }
    copy_.resize(static_cast<size_t>(x.count()) * element_size(dtype_of(x)));
    if (reads) x.copy_to_host(copy_.data());
    memory_ = copy_.data();
  }
  HostElements(const HostElements&) = delete;
  char* data() const { return memory_; }
  // Stores results in the tensor.
  void finish() const {
    if (writes_ && !is_direct_ && !copy_.empty()) copy_from_host(tensor_, copy_.data());
  }

 private:
  Tensor tensor_;
  bool writes_, is_direct_;
  char* memory_ = nullptr;
  std::vector<char> copy_;
};

using Elements = std::shared_ptr<HostElements>;
Elements input(const Tensor& x, const Tensor& apart = {}) { return std::make_shared<HostElements>(x, true, false, apart); }
Elements output(const Tensor& x) { return std::make_shared<HostElements>(x, false, true); }
Elements in_place(const Tensor& x) { return std::make_shared<HostElements>(x, true, true); }

uint32_t how_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::min: return PLUGRAD_REDUCE_MIN;
    case ReduceOp::max: return PLUGRAD_REDUCE_MAX;
    case ReduceOp::product: return PLUGRAD_REDUCE_PRODUCT;
    default: return PLUGRAD_REDUCE_SUM;
  }
}

bool is_ordered(Order order) { return order == Order::ordered || (order == Order::automatic && deterministic()); }

// One call of a function: its name, its group and its options.
class Collective {
 public:
  Collective(const char* name, const CollectiveOptions& options)
      : name_(name), options_(options), group_(options.group.defined() ? options.group : world()) {
    observe::unrepeatable("moves tensors between processes", "call it outside of the compiled step");
  }
  int size() const { return group_.size(); }
  int member(int rank) const { return group_.state().member(rank, name_); }
  // The same, of another process.
  int other(int rank) const {
    const int peer = member(rank);
    if (peer == group_.rank()) refuse(name_, "rank " + std::to_string(rank) + " is this process itself");
    return peer;
  }
  int rank() const { return group_.rank(); }

  void require_input(const Tensor& x) const { require_defined(x, name_); }
  void require_output(const Tensor& x) const {
    require_writable(x, name_);
    if (is_recorded(x, nullptr))
      refuse(name_,
             "the result of an op would be overwritten while recording: write under NoGrad, or into a detached tensor");
  }
  void require_counts(const Tensor& many, const Tensor& few) const {
    if (many.dtype() != few.dtype())
      refuse(name_, std::string("the tensors are ") + dtype_name(many.dtype()) + " and " + dtype_name(few.dtype()) +
                        ": give tensors of one dtype");
    if (many.count() != few.count() * size())
      refuse(name_, std::to_string(many.count()) + " and " + std::to_string(few.count()) + " elements for " +
                        std::to_string(size()) + " ranks: " + std::to_string(few.count() * size()) + " and " +
                        std::to_string(few.count()) + " expected");
  }
  void require_reduction(const Tensor& x, ReduceOp op) const {
    if (op == ReduceOp::average && !is_floating(x.dtype()))
      refuse(name_,
             std::string("the average of ") + dtype_name(x.dtype()) + ": give a tensor of a floating dtype, or a sum");
    if (op == ReduceOp::sum && x.dtype() == DType::boolean)
      refuse(name_, "the sum of bool: cast it to i32, or take the maximum, which is `or`");
  }
  void reduce_by(Request& request, ReduceOp op) const {
    request.how = how_of(op);
    request.average = op == ReduceOp::average;
    request.ordered = is_ordered(options_.order);
  }

  // Starts the collective; `from` and `to` live until its end.
  Work start(Request request, const Elements& from, const Elements& to) const {
    if (from) request.from = from->data();
    if (to) request.to = to->data();
    if (request.dtype == PLUGRAD_BOOL && request.how) request.dtype = PLUGRAD_U8;
    auto state = std::make_shared<WorkState>();
    state->then = [from, to] {
      if (to) to->finish();
    };
    group_.state().submit(std::move(request), state);
    Work work(std::move(state));
    if (!options_.async_op) work.wait();
    return work;
  }

 private:
  const char* name_;
  const CollectiveOptions& options_;
  Group group_;
};

Request request_of(uint32_t kind, const Tensor& x, uint64_t count, int peer = -1) {
  Request request;
  request.kind = kind;
  request.dtype = dtype_of(x);
  request.count = count;
  request.peer = peer;
  return request;
}
uint64_t count_of(const Tensor& x) { return static_cast<uint64_t>(x.count()); }

// The number of elements of each part of the first axis. rows: of each part; empty for equal parts.
std::vector<uint64_t> parts_of(const Tensor& x, const std::vector<int64_t>& rows, const char* which, int size) {
  constexpr const char* kName = "all_to_all_single";
  if (!x.rank()) refuse(kName, std::string(which) + " has no axis to divide");
  if (rows.empty()) {
    if (x.size(0) % size)
      refuse(kName, std::string(which) + " has " + std::to_string(x.size(0)) + " rows, which " + std::to_string(size) +
                        " ranks cannot share equally: give the rows of each rank");
    return std::vector<uint64_t>(static_cast<size_t>(size), count_of(x) / static_cast<uint64_t>(size));
  }
  const int64_t sum = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  const bool negative = std::ranges::any_of(rows, [](int64_t n) { return n < 0; });
  if (rows.size() != static_cast<size_t>(size) || negative || sum != x.size(0))
    refuse(kName, std::string(which) + ": " + std::to_string(size) + " numbers of rows with the sum " +
                      std::to_string(x.size(0)) + " expected");
  const uint64_t row = x.size(0) ? count_of(x) / static_cast<uint64_t>(x.size(0)) : 0;
  std::vector<uint64_t> parts;
  for (const int64_t each : rows) parts.push_back(static_cast<uint64_t>(each) * row);
  return parts;
}
}  // namespace

void Work::wait() {
  if (!state_) return;
  const std::shared_ptr<WorkState> state = std::exchange(state_, nullptr);
  if (state->complete) state->complete();
  std::unique_lock lock(state->mutex);
  // On a busy core, a thread that sleeps waits for the end of another thread's slice, some 4 ms.
  for (const auto end = Engine::Clock::now() + kSpin; !state->ended && Engine::Clock::now() < end;) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  state->changed.wait(lock, [&] { return state->ended; });
  if (state->error) std::rethrow_exception(state->error);
  if (const auto then = std::exchange(state->then, {})) then();
}

bool Work::is_completed() const {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->ended;
}

Work all_reduce(const Tensor& x, ReduceOp op, const CollectiveOptions& options) {
  const Collective call("all_reduce", options);
  call.require_output(x);
  call.require_reduction(x, op);
  Request request = request_of(PLUGRAD_COLL_ALL_REDUCE, x, count_of(x));
  call.reduce_by(request, op);
  const Elements elements = in_place(x);
  return call.start(std::move(request), elements, elements);
}

Work reduce_scatter_tensor(const Tensor& out, const Tensor& in, ReduceOp op, const CollectiveOptions& options) {
  const Collective call("reduce_scatter_tensor", options);
  call.require_output(out);
  call.require_input(in);
  call.require_counts(in, out);
  call.require_reduction(in, op);
  Request request = request_of(PLUGRAD_COLL_REDUCE_SCATTER, out, count_of(out));
  call.reduce_by(request, op);
  return call.start(std::move(request), input(in, out), output(out));
}

Work all_gather_into_tensor(const Tensor& out, const Tensor& in, const CollectiveOptions& options) {
  const Collective call("all_gather_into_tensor", options);
  call.require_output(out);
  call.require_input(in);
  call.require_counts(out, in);
  return call.start(request_of(PLUGRAD_COLL_ALL_GATHER, in, count_of(in)), input(in, out), output(out));
}

Work broadcast(const Tensor& x, int source, const CollectiveOptions& options) {
  const Collective call("broadcast", options);
  const int peer = call.member(source);
  const bool sends = peer == call.rank();
  if (sends) call.require_input(x);
  else call.require_output(x);
  const Elements elements = sends ? input(x) : output(x);
  return call.start(request_of(PLUGRAD_COLL_BROADCAST, x, count_of(x), peer), elements, elements);
}

Work all_to_all_single(const Tensor& out, const Tensor& in, const std::vector<int64_t>& output_rows,
                       const std::vector<int64_t>& input_rows, const CollectiveOptions& options) {
  const Collective call("all_to_all_single", options);
  call.require_output(out);
  call.require_input(in);
  if (out.dtype() != in.dtype())
    refuse("all_to_all_single", std::string("the output is ") + dtype_name(out.dtype()) + " and the input " +
                                    dtype_name(in.dtype()) + ": give tensors of one dtype");
  std::vector<uint64_t> sent = parts_of(in, input_rows, "the input", call.size());
  const std::vector<uint64_t> received = parts_of(out, output_rows, "the output", call.size());
  const bool uneven = !output_rows.empty() || !input_rows.empty();
  const auto here = static_cast<size_t>(call.rank());
  if (sent[here] != received[here])
    refuse("all_to_all_single", "rank " + std::to_string(here) + " sends itself " + std::to_string(sent[here]) +
                                    " elements and receives " + std::to_string(received[here]) + ": give equal parts there");
  if (!uneven && in.count() != out.count())
    refuse("all_to_all_single", "equal parts of " + std::to_string(in.count()) + " and " + std::to_string(out.count()) +
                                    " elements: give tensors of one size, or the rows of each rank");
  Request request = request_of(PLUGRAD_COLL_ALL_TO_ALL, in, uneven ? 0 : sent[0]);
  if (uneven) {
    sent.insert(sent.end(), received.begin(), received.end());
    request.counts = std::move(sent);
  }
  return call.start(std::move(request), input(in, out), output(out));
}

Work send(const Tensor& x, int destination, const CollectiveOptions& options) {
  const Collective call("send", options);
  call.require_input(x);
  return call.start(request_of(PLUGRAD_COLL_SEND, x, count_of(x), call.other(destination)), input(x), nullptr);
}

Work recv(const Tensor& x, int source, const CollectiveOptions& options) {
  const Collective call("recv", options);
  call.require_output(x);
  return call.start(request_of(PLUGRAD_COLL_RECV, x, count_of(x), call.other(source)), nullptr, output(x));
}

Work barrier(const CollectiveOptions& options) {
  const Collective call("barrier", options);
  Request request;
  request.kind = PLUGRAD_COLL_BARRIER;
  return call.start(std::move(request), nullptr, nullptr);
}

}  // namespace plugrad::distributed
