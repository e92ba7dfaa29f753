#include <core/distributed/collective_start.hpp>
#include <core/distributed/data_parallel_state.hpp>
#include <core/ops/argument.hpp>
#include <core/runtime/fnv.hpp>
#include <core/runtime/observe/observer.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/raw.hpp>

#include <algorithm>
#include <atomic>
#include <numeric>

namespace plugrad::distributed {
namespace {
// A hash of everything that must be equal on all ranks.
uint64_t form_of(const std::vector<Tensor>& parameters, const std::vector<Tensor>& buffers,
                 const DataParallelOptions& options) {
  Fnv hash;
  const auto mix = [&](int64_t word) { hash.add(static_cast<uint64_t>(word)); };
  for (const std::vector<Tensor>* all : {&parameters, &buffers})
    for (const Tensor& each : *all) {
      mix(static_cast<int64_t>(each.dtype()) + 100 * each.requires_grad());
      for (const int64_t extent : each.shape()) mix(extent);
      mix(-1);
    }
  mix(static_cast<int64_t>(options.bucket_bytes));
  mix(options.slices);
  return hash.value();
}

int size_of(const Group& group) { return group.defined() ? group.size() : 1; }
int rank_of(const Group& group) { return group.defined() ? group.rank() : 0; }
// Returns the first of 2^32 numbers for tell_steps. No other setting has these numbers.
uint64_t next_id() {
  static std::atomic<uint64_t> count{0};
  return ++count << 32;
}
Group chosen(const Group& group) { return group.defined() || !is_initialized() ? group : world(); }
}  // namespace

DataParallelState::DataParallelState(const std::vector<Tensor>& parameters, const std::vector<Tensor>& all_buffers,
                                     const DataParallelOptions& options)
    : buffers(all_buffers), group_(chosen(options.group)), bucket_bytes_(options.bucket_bytes),
      order_(options.slices && options.order == Order::automatic ? Order::ordered : options.order),
      is_sliced_(options.slices > 0), id_(next_id()), unit_(options.unit) {
  for (const Tensor& each : parameters)
    if (each.requires_grad()) parameters_.push_back(each);
  if (parameters_.empty()) refuse(kDataParallel, "no parameter requires a gradient");
  if (options.slices < 0 || options.slices % size_of(group_))
    refuse(kDataParallel, "slices is " + std::to_string(options.slices) + " for " + std::to_string(size_of(group_)) +
                              " ranks: a multiple of their number expected");
  if (options.slices) passes_ = options.slices / size_of(group_);
  require_equal(form_of(parameters, buffers, options));
  broadcast(parameters);
  broadcast(buffers);
  std::vector<size_t> order(parameters_.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  buckets_ = make_buckets(parameters_, order, bucket_bytes_, is_sliced_, numbers());
  place();
}

DataParallelState::~DataParallelState() {
  for (HookHandle& each : handles_) each.remove();
  pass_ = 0;
  synchronizes_ = true;
  tell_steps();
}

double DataParallelState::shrink(const Tensor& x) const {
  return accumulator_of(x.dtype()) == x.dtype() ? 1 : 1.0 / size_of(group_);
}

void DataParallelState::require_equal(uint64_t form) const {
  const auto halves = [&] {
    return std::vector<double>{static_cast<double>(form >> 32), static_cast<double>(form & 0xffffffffu)};
  };
  std::vector<double> least = halves(), most = halves();
  reduce_numbers(group_, least, PLUGRAD_REDUCE_MIN);
  reduce_numbers(group_, most, PLUGRAD_REDUCE_MAX);
  if (least != most)
    refuse(kDataParallel,
           "rank " + std::to_string(rank_of(group_)) + " has " + std::to_string(parameters_.size()) +
               " parameters with gradients; the parameters, buffers or options of another rank differ: make the "
               "same model on all ranks");
}

void DataParallelState::broadcast(const std::vector<Tensor>& tensors) const {
  if (!group_.defined()) return;
  const NoGrad unrecorded;
  std::vector<Work> works;
  for (const Tensor& each : tensors)
    works.push_back(distributed::broadcast(each.detach(), group_.ranks()[0], {.group = group_, .async_op = true}));
  for (Work& each : works) each.wait();
}

void DataParallelState::place() {
  places_.resize(parameters_.size());
  for (size_t b = 0; b < buckets_.size(); ++b)
    for (size_t k = 0; k < buckets_[b].parameters.size(); ++k) places_[buckets_[b].parameters[k]] = {b, k};
  figures_.buckets = buckets_.size();
}

void DataParallelState::add_hooks() {
  const std::weak_ptr<DataParallelState> weak = weak_from_this();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    handles_.push_back(add_ready_hook(parameters_[i], [weak, i](const Tensor& grad) {
      if (const auto state = weak.lock()) state->arrived(i, grad);
    }));
    handles_.push_back(parameters_[i].register_post_accumulate_grad_hook([weak](Tensor&) {
      if (const auto state = weak.lock()) state->stored();
    }));
  }
}

void DataParallelState::begin(bool has_data) {
  has_data_ = has_data;
  hooked_ = stored_ = 0;
  arrived_.assign(parameters_.size(), 0);
  used_.assign(parameters_.size(), 0);
  for (Bucket& each : buckets_) each.arrived = 0;
  recorded_ = observe::is_recorded() ? std::make_shared<Uses>() : nullptr;
  in_step({}, {"a pass of DataParallel", [has_data](DataParallelState& state) { state.begin_now(has_data); }});
}

// Writes a gradient to its place, with what this rank has accumulated before, and its weight unless start_now() applies it.
void DataParallelState::fill(Bucket& bucket, size_t place, const Tensor& grad) {
  const size_t i = bucket.parameters[place];
  Tensor view = bucket.views[place];
  const Tensor before = passes_ == 1 ? parameters_[i].grad() : Tensor();
  const double scale = recorded_ ? 1 : scale_of(view);
  const Tensor first = grad.defined() ? grad : before;
  if (grad.defined() && before.defined()) {  // before may be the view itself
    view.copy_(before);
    view.add_(grad);
  } else if (scale != 1 && view.dtype() == first.dtype() && run_into(PLUGRAD_OP_MUL, view, {first, Number(scale)})) {
    return;
  } else {
    view.copy_(first);
  }
  if (scale != 1) view.mul_(scale);
}

void DataParallelState::arrived(size_t i, const Tensor& grad) {
  if (!synchronizes_) return;
  const NoGrad unrecorded;
  if (!in_pass_ || arrived_[i]) begin(true);  // a pass that failed left its gradients behind
  ++hooked_;
  arrived_[i] = used_[i] = 1;
  if (!is_ordered_ && std::ranges::find(arrivals_, i) == arrivals_.end()) arrivals_.push_back(i);
  const auto [b, place] = places_[i];
  fill(buckets_[b], place, grad);
  ++buckets_[b].arrived;
  start_full(false);
}

// The places of parameters without a gradient in this pass.
void DataParallelState::complete(Bucket& bucket) {
  for (size_t k = 0; k < bucket.parameters.size(); ++k) {
    const size_t i = bucket.parameters[k];
    if (arrived_[i]) continue;
    const bool has_earlier = passes_ == 1 && parameters_[i].grad().defined() && has_data_;
    if (has_earlier) fill(bucket, k, {});
    else bucket.views[k].fill_(0);
    used_[i] = has_earlier;
  }
}

// Buckets start in their order, on all ranks alike, in whatever order the gradients come.
void DataParallelState::start_full(bool all) {
  while (next_ < buckets_.size()) {
    const size_t b = next_;
    Bucket& bucket = buckets_[b];
    if (bucket.arrived < bucket.parameters.size()) {
      if (!all) return;
      complete(bucket);
    }
    const bool scales = recorded_ != nullptr;
    in_step({bucket.flat}, {.text = "all_reduce of " + std::to_string(bucket.flat.count()) + " gradients, start",
                            .run = [=, used = used_](DataParallelState& state) { state.start_now(b, !all, scales, used); },
                            .is_in_flight = true});
  }
}

void DataParallelState::stored() {
  if (!in_pass_ || ++stored_ < hooked_) return;
  end_pass();
}

// After a backward pass. Returns whether any rank had data.
bool DataParallelState::end_pass() {
  const NoGrad unrecorded;
  start_full(true);
  std::vector<Tensor> memory;
  for (const Bucket& each : buckets_) memory.push_back(each.flat);
  in_step(memory, {"the mean of gradients, wait",
                   [pass = recorded_, used = used_](DataParallelState& state) { state.finish_now(used, pass.get()); }});
  recorded_ = nullptr;
  if (pass_) {
    for (Tensor& each : parameters_) each.clear_grad();
    return true;
  }
  share();
  if (!is_ordered_) order_by_arrival();
  return sums_[parameters_.size()] > 0;
}

// Makes the means the gradients of the parameters.
void DataParallelState::share() {
  for (const Bucket& bucket : buckets_)
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const size_t i = bucket.parameters[k];
      if (sums_[i] > 0) parameters_[i].set_grad(cast(bucket.views[k], parameters_[i].dtype()));
      else parameters_[i].clear_grad();
    }
}

// After the first step, the buckets follow the order in which the gradients of rank 0 came.
void DataParallelState::order_by_arrival() {
  std::vector<int64_t> order(arrivals_.begin(), arrivals_.end());
  for (size_t i = parameters_.size(); i-- > 0;)
    if (std::ranges::find(arrivals_, i) == arrivals_.end()) order.push_back(static_cast<int64_t>(i));
  Request request;
  request.kind = PLUGRAD_COLL_BROADCAST;
  request.dtype = PLUGRAD_I64;
  request.peer = 0;
  exchange_numbers(group_, std::move(request), std::as_writable_bytes(std::span(order)));
  is_ordered_ = true;
  const std::vector<size_t> chosen(order.begin(), order.end());
  std::vector<size_t> now;
  for (const Bucket& each : buckets_) now.insert(now.end(), each.parameters.begin(), each.parameters.end());
  if (chosen == now) return;
  observe::fail("DataParallel orders its gradients after its first step");
  buckets_ = make_buckets(parameters_, chosen, bucket_bytes_, is_sliced_,
                          numbers());  // the gradients keep the memory of the old ones
  place();
}

bool DataParallelState::pass_without_data() {
  const NoGrad unrecorded;
  begin(false);
  return end_pass();
}

bool DataParallelState::step_without_data() {
  bool any = false;
  for (int i = pass_; i < passes_; ++i) any = pass_without_data();
  return any;
}

}  // namespace plugrad::distributed
