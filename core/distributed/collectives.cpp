// Collectives of tensors: checks of their arguments.
#include <plugrad/distributed/collectives.hpp>

#include <core/distributed/collective_start.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/write.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/runtime/policy.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace plugrad::distributed {
namespace {
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
      : name_(name), options_(options), group_(options.group.defined() ? options.group : world()) {}
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

  Work start(Request request, const Tensor& in, const Tensor& out) const {
    Work work = start_collective(group_, std::move(request), in, out);
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

Work all_reduce(const Tensor& x, ReduceOp op, const CollectiveOptions& options) {
  const Collective call("all_reduce", options);
  call.require_output(x);
  call.require_reduction(x, op);
  Request request = request_of(PLUGRAD_COLL_ALL_REDUCE, x, count_of(x));
  call.reduce_by(request, op);
  return call.start(std::move(request), x, x);
}

Work reduce_scatter_tensor(const Tensor& out, const Tensor& in, ReduceOp op, const CollectiveOptions& options) {
  const Collective call("reduce_scatter_tensor", options);
  call.require_output(out);
  call.require_input(in);
  call.require_counts(in, out);
  call.require_reduction(in, op);
  Request request = request_of(PLUGRAD_COLL_REDUCE_SCATTER, out, count_of(out));
  call.reduce_by(request, op);
  return call.start(std::move(request), in, out);
}

Work all_gather_into_tensor(const Tensor& out, const Tensor& in, const CollectiveOptions& options) {
  const Collective call("all_gather_into_tensor", options);
  call.require_output(out);
  call.require_input(in);
  call.require_counts(out, in);
  return call.start(request_of(PLUGRAD_COLL_ALL_GATHER, in, count_of(in)), in, out);
}

Work broadcast(const Tensor& x, int source, const CollectiveOptions& options) {
  const Collective call("broadcast", options);
  const int peer = call.member(source);
  const bool sends = peer == call.rank();
  if (sends) call.require_input(x);
  else call.require_output(x);
  return call.start(request_of(PLUGRAD_COLL_BROADCAST, x, count_of(x), peer), sends ? x : Tensor(), sends ? Tensor() : x);
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
  return call.start(std::move(request), in, out);
}

Work send(const Tensor& x, int destination, const CollectiveOptions& options) {
  const Collective call("send", options);
  call.require_input(x);
  return call.start(request_of(PLUGRAD_COLL_SEND, x, count_of(x), call.other(destination)), x, {});
}

Work recv(const Tensor& x, int source, const CollectiveOptions& options) {
  const Collective call("recv", options);
  call.require_output(x);
  return call.start(request_of(PLUGRAD_COLL_RECV, x, count_of(x), call.other(source)), {}, x);
}

Work barrier(const CollectiveOptions& options) {
  const Collective call("barrier", options);
  Request request;
  request.kind = PLUGRAD_COLL_BARRIER;
  return call.start(std::move(request), {}, {});
}

}  // namespace plugrad::distributed
