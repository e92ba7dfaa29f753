#include <plugrad/distributed/data_parallel.hpp>

#include <core/autograd/hooks.hpp>
#include <core/distributed/buckets.hpp>
#include <core/distributed/group.hpp>
#include <core/ops/argument.hpp>
#include <core/runtime/observe/observer.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/raw.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace plugrad::distributed {
namespace {
constexpr const char* kName = "DataParallel";
using Clock = std::chrono::steady_clock;

// FNV-1a of what must be equal on all ranks.
uint64_t form_of(const std::vector<Tensor>& parameters, const std::vector<Tensor>& buffers,
                 const DataParallelOptions& options) {
  uint64_t h = 0xcbf29ce484222325u;
  const auto mix = [&](int64_t word) { h = (h ^ static_cast<uint64_t>(word)) * 0x100000001b3u; };
  for (const std::vector<Tensor>* all : {&parameters, &buffers})
    for (const Tensor& each : *all) {
      mix(static_cast<int64_t>(each.dtype()) + 100 * each.requires_grad());
      for (const int64_t extent : each.shape()) mix(extent);
      mix(-1);
    }
  mix(static_cast<int64_t>(options.bucket_bytes));
  mix(options.slices);
  return h;
}

// Nothing to do for a process alone.
void run(const Group& group, Request request) {
  if (!group.defined()) return;
  const auto state = std::make_shared<WorkState>();
  group.state().submit(std::move(request), state);
  Work(state).wait();
}

// A reduction of numbers in host memory.
void reduce_numbers(const Group& group, double* numbers, size_t count, ReduceOp op) {
  Request request;
  request.kind = PLUGRAD_COLL_ALL_REDUCE;
  request.dtype = PLUGRAD_F64;
  request.from = request.to = numbers;
  request.count = count;
  request.how = op == ReduceOp::max ? PLUGRAD_REDUCE_MAX : op == ReduceOp::min ? PLUGRAD_REDUCE_MIN : PLUGRAD_REDUCE_SUM;
  run(group, std::move(request));
}

int size_of(const Group& group) { return group.defined() ? group.size() : 1; }
int rank_of(const Group& group) { return group.defined() ? group.rank() : 0; }
Group chosen(const Group& group) { return group.defined() || !is_initialized() ? group : world(); }
}  // namespace

class DataParallelState {
 public:
  DataParallelState(const std::vector<Tensor>& parameters, const std::vector<Tensor>& buffers,
                    const DataParallelOptions& options);
  ~DataParallelState() {
    for (HookHandle& each : handles_) each.remove();
  }
  void add_hooks(const std::shared_ptr<DataParallelState>& self);
  void broadcast(const std::vector<Tensor>& tensors) const;
  bool step_without_data();
  bool pass_without_data();

  int passes() const { return passes_; }
  double weight = 1;
  bool synchronizes = true;
  DataParallelFigures figures;
  std::vector<Tensor> buffers;

 private:
  void require_equal(uint64_t form) const;
  void place();
  void begin();
  void arrived(size_t i, const Tensor& grad);
  void fill(Bucket& bucket, size_t place, const Tensor& grad);
  void complete(Bucket& bucket);
  void start_full(bool all);
  void stored();
  bool end_pass();
  std::vector<double> status();
  void share(const std::vector<double>& sums);
  // Sums of halves are of parts of the gradients: they may overflow where their mean does not.
  double shrink(const Tensor& x) const { return accumulator_of(x.dtype()) == x.dtype() ? 1 : 1.0 / size_of(group_); }
  void order_by_arrival();

  Group group_;
  uint64_t bucket_bytes_;
  Order order_;
  bool is_sliced_;
  int passes_ = 1;  // of this rank, in a step
  std::vector<Tensor> parameters_;
  std::vector<HookHandle> handles_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<size_t, size_t>> places_;  // by parameter: bucket, place in it
  std::vector<size_t> arrivals_;                   // of the first pass, until the buckets follow it

  double unit_;  // the weight that counts as 1, equal on all ranks; 0: not known yet
  bool in_pass_ = false, has_data_ = true, is_ordered_ = false;
  int pass_ = 0;                          // of the step
  size_t hooked_ = 0, stored_ = 0;        // gradients of the pass
  size_t next_ = 0;                       // the bucket to start next
  std::vector<char> used_, arrived_;      // by parameter: in the step, in the pass
  double weights_ = 0, pass_weight_ = 0;  // of the passes of the step, and of the running pass
};

DataParallelState::DataParallelState(const std::vector<Tensor>& parameters, const std::vector<Tensor>& all_buffers,
                                     const DataParallelOptions& options)
    : buffers(all_buffers), group_(chosen(options.group)), bucket_bytes_(options.bucket_bytes),
      order_(options.slices && options.order == Order::automatic ? Order::ordered : options.order),
      is_sliced_(options.slices > 0), unit_(options.unit) {
  for (const Tensor& each : parameters)
    if (each.requires_grad()) parameters_.push_back(each);
  if (parameters_.empty()) refuse(kName, "no parameter requires a gradient");
  if (options.slices < 0 || options.slices % size_of(group_))
    refuse(kName, "slices is " + std::to_string(options.slices) + " for " + std::to_string(size_of(group_)) +
                      " ranks: a multiple of their number expected");
  if (options.slices) passes_ = options.slices / size_of(group_);
  require_equal(form_of(parameters, buffers, options));
  broadcast(parameters);
  broadcast(buffers);
  std::vector<size_t> order(parameters_.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  buckets_ = make_buckets(parameters_, order, bucket_bytes_, is_sliced_);
  place();
  used_.resize(parameters_.size());
  arrived_.resize(parameters_.size());
}

void DataParallelState::require_equal(uint64_t form) const {
  const auto halves = [&] {
    return std::vector<double>{static_cast<double>(form >> 32), static_cast<double>(form & 0xffffffffu)};
  };
  std::vector<double> least = halves(), most = halves();
  reduce_numbers(group_, least.data(), 2, ReduceOp::min);
  reduce_numbers(group_, most.data(), 2, ReduceOp::max);
  if (least != most)
    refuse(kName, "rank " + std::to_string(rank_of(group_)) + " has " + std::to_string(parameters_.size()) +
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
  figures.buckets = buckets_.size();
}

void DataParallelState::add_hooks(const std::shared_ptr<DataParallelState>& self) {
  const std::weak_ptr<DataParallelState> weak = self;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    handles_.push_back(add_ready_hook(parameters_[i], [weak, i](const Tensor& grad) {
      if (const auto state = weak.lock()) state->arrived(i, grad);
    }));
    handles_.push_back(parameters_[i].register_post_accumulate_grad_hook([weak](Tensor&) {
      if (const auto state = weak.lock()) state->stored();
    }));
  }
}

void DataParallelState::begin() {
  observe::unrepeatable("reduces gradients between processes", "compile the model, and not the step with its backward pass");
  if (unit_ == 0) {  // in the first pass of a job, all ranks agree on it
    unit_ = has_data_ ? weight : 0;
    reduce_numbers(group_, &unit_, 1, ReduceOp::max);
  }
  if (in_pass_ && next_)
    refuse(kName,
           "an earlier backward pass failed while its gradients were on their way: make DataParallel anew on all ranks");
  if (in_pass_) weights_ -= pass_weight_;  // of a pass that failed
  in_pass_ = true;
  hooked_ = stored_ = next_ = 0;
  std::ranges::fill(arrived_, 0);
  if (pass_ == 0) {
    std::ranges::fill(used_, 0);
    weights_ = 0;
  }
  pass_weight_ = has_data_ ? weight : 0;
  weights_ += pass_weight_;
  for (Bucket& each : buckets_) each.arrived = 0;
}

// Writes a weighted gradient to its place, with what this rank has accumulated before.
void DataParallelState::fill(Bucket& bucket, size_t place, const Tensor& grad) {
  const size_t i = bucket.parameters[place];
  Tensor view = bucket.views[place];
  const Tensor before = passes_ == 1 ? parameters_[i].grad() : Tensor();
  const double scale = weight / unit_ * shrink(view);
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
  if (!synchronizes) return;
  const NoGrad unrecorded;
  if (!in_pass_ || arrived_[i]) begin();  // a pass that failed left its gradients behind
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
    used_[i] = static_cast<char>(used_[i] | has_earlier);
  }
}

// Buckets start in their order, on all ranks alike, in whatever order the gradients come.
void DataParallelState::start_full(bool all) {
  for (; next_ < buckets_.size(); ++next_) {
    Bucket& bucket = buckets_[next_];
    if (bucket.arrived < bucket.parameters.size()) {
      if (!all) return;
      complete(bucket);
    }
    if (!add_pass(bucket, pass_, passes_)) continue;
    if (!all) ++figures.early;
    if (group_.defined())
      bucket.work = all_reduce(bucket.flat, ReduceOp::sum, {.group = group_, .async_op = true, .order = order_});
  }
}

void DataParallelState::stored() {
  if (!in_pass_ || ++stored_ < hooked_) return;
  end_pass();
}

// After a backward pass. Returns whether any rank had data.
bool DataParallelState::end_pass() {
  const NoGrad unrecorded;
  in_pass_ = false;
  start_full(true);
  if (++pass_ < passes_) {
    for (Tensor& each : parameters_) each.clear_grad();
    return true;
  }
  pass_ = 0;
  const auto begin = Clock::now();
  std::vector<double> sums = status();
  for (Bucket& each : buckets_) each.work.wait();
  reduce_numbers(group_, sums.data(), sums.size(), ReduceOp::sum);
  figures.waited_seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  const auto ranks = static_cast<double>(size_of(group_));
  if (sums.back() != static_cast<double>(figures.steps) * ranks)
    refuse(kName, "rank " + std::to_string(rank_of(group_)) + " is in step " + std::to_string(figures.steps + 1) +
                      ", and the others are in step " + std::to_string(sums.back() / ranks + 1) +
                      " on average: all ranks must make the same steps, also those without data (step_without_data)");
  ++figures.steps;
  share(sums);
  if (!is_ordered_) order_by_arrival();
  return sums[parameters_.size()] > 0;
}

// A number for each parameter, whether this rank used it; the weight; the step.
std::vector<double> DataParallelState::status() {
  std::vector<double> numbers(used_.begin(), used_.end());
  numbers.push_back(weights_);
  numbers.push_back(static_cast<double>(figures.steps));
  return numbers;
}

// Makes sums means, and the gradients of the parameters.
void DataParallelState::share(const std::vector<double>& sums) {
  const double total = sums[parameters_.size()];
  for (Bucket& bucket : buckets_) {
    const double mean = total > 0 ? unit_ / total / shrink(bucket.flat) : 1;
    if (mean != 1) bucket.flat.mul_(mean);
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const size_t i = bucket.parameters[k];
      if (sums[i] > 0) parameters_[i].set_grad(cast(bucket.views[k], parameters_[i].dtype()));
      else parameters_[i].clear_grad();
    }
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
  request.from = request.to = order.data();
  request.count = order.size();
  request.peer = 0;
  run(group_, std::move(request));
  is_ordered_ = true;
  const std::vector<size_t> chosen(order.begin(), order.end());
  std::vector<size_t> now;
  for (const Bucket& each : buckets_) now.insert(now.end(), each.parameters.begin(), each.parameters.end());
  if (chosen == now) return;
  buckets_ = make_buckets(parameters_, chosen, bucket_bytes_, is_sliced_);  // the gradients keep the memory of the old ones
  place();
}

bool DataParallelState::pass_without_data() {
  const NoGrad unrecorded;
  has_data_ = false;
  begin();
  const bool any = end_pass();
  has_data_ = true;
  return any;
}

bool DataParallelState::step_without_data() {
  bool any = false;
  for (int i = pass_; i < passes_; ++i) any = pass_without_data();
  return any;
}

DataParallel::DataParallel(const std::vector<Tensor>& parameters, const std::vector<Tensor>& buffers,
                           const DataParallelOptions& options)
    : state_(std::make_shared<DataParallelState>(parameters, buffers, options)) {
  state_->add_hooks(state_);
}
DataParallel::~DataParallel() = default;
void DataParallel::set_weight(double weight) {
  if (!(weight > 0)) refuse(kName, "a weight of " + std::to_string(weight) + ": a positive number expected");
  state_->weight = weight;
}
int DataParallel::passes() const { return state_->passes(); }
bool DataParallel::step_without_data() { return state_->step_without_data(); }
void DataParallel::pass_without_data() { state_->pass_without_data(); }
void DataParallel::set_synchronizing(bool on) {
  if (!on && state_->passes() > 1) refuse(kName, "slices are passes of one step: leave no_sync out");
  state_->synchronizes = on;
}
bool DataParallel::synchronizing() const { return state_->synchronizes; }
void DataParallel::broadcast_buffers() { state_->broadcast(state_->buffers); }
DataParallelFigures DataParallel::figures() const { return state_->figures; }

}  // namespace plugrad::distributed
