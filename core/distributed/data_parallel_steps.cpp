// What DataParallel does in each pass, also in each replay of a compiled step.
#include <core/distributed/collective_start.hpp>
#include <core/distributed/data_parallel_state.hpp>
#include <core/ops/argument.hpp>
#include <core/runtime/observe/observer.hpp>
#include <core/tensor/host_task.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/transfer.hpp>

#include <algorithm>
#include <chrono>

namespace plugrad::distributed {
using Clock = std::chrono::steady_clock;

class DataParallelState::StepCall final : public HostTask {
 public:
  StepCall(std::weak_ptr<DataParallelState> of, StepTask task) : of_(std::move(of)), task_(std::move(task)) {}
  void call(std::span<const Tensor>) override { task_.run(*state()); }
  std::string text() const override { return task_.text; }
  bool is_in_flight() const override { return task_.is_in_flight; }

 private:
  std::shared_ptr<DataParallelState> state() const {
    if (auto state = of_.lock()) return state;
    refuse(kDataParallel, "a compiled step reduces the gradients of one that has ended: compile the step anew");
  }

  std::weak_ptr<DataParallelState> of_;
  StepTask task_;
};

void DataParallelState::in_step(const std::vector<Tensor>& memory, StepTask task) {
  if (!observe::is_recorded()) return task.run(*this);
  run_in_step(std::make_shared<StepCall>(weak_from_this(), std::move(task)), memory, memory);
}

void DataParallelState::tell_steps() {
  const uint64_t now = 2 * static_cast<uint64_t>(pass_) + !synchronizes_;
  if (now == told_) return;
  observe::flip_setting(id_ + told_);
  observe::flip_setting(id_ + now);
  told_ = now;
}

void DataParallelState::set_weight(double weight) {
  if (!(weight > 0)) refuse(kDataParallel, "a weight of " + std::to_string(weight) + ": a positive number expected");
  in_step({}, {"the weight of a pass", [weight](DataParallelState& state) { state.weight_ = weight; }});
}

void DataParallelState::set_synchronizing(bool on) {
  if (!on && passes_ > 1) refuse(kDataParallel, "slices are passes of one step: leave no_sync out");
  synchronizes_ = on;
  tell_steps();
}

void DataParallelState::begin_now(bool has_data) {
  if (unit_ == 0) {  // in the first pass of a job, all ranks agree on it
    unit_ = has_data ? weight_ : 0;
    reduce_numbers(group_, {&unit_, 1}, PLUGRAD_REDUCE_MAX);
  }
  if (in_pass_ && next_)
    refuse(kDataParallel,
           "an earlier backward pass failed while its gradients were on their way: make DataParallel anew on all ranks");
  if (in_pass_) weights_ -= pass_weight_;  // of a pass that failed
  in_pass_ = true;
  next_ = 0;
  if (pass_ == 0) {
    used_before_.assign(parameters_.size(), 0);
    weights_ = 0;
  }
  pass_weight_ = has_data ? weight_ : 0;
  weights_ += pass_weight_;
}

namespace {
void write_numbers(const Tensor& to, const std::vector<double>& numbers) {
  if (to.dtype() == DType::f64) return copy_from_host(to, numbers.data());
  const std::vector<float> rounded(numbers.begin(), numbers.end());
  copy_from_host(to, rounded.data());
}
std::vector<double> read_numbers(const Tensor& from) {
  if (from.dtype() == DType::f64) return from.to_vector<double>();
  const std::vector<float> numbers = from.to_vector<float>();
  return {numbers.begin(), numbers.end()};
}
}  // namespace

// scales: by this rank's weight, if the gradients came without it. used: by parameter, in this pass; of all parameters where
// the bucket is the last.
void DataParallelState::start_now(size_t b, bool is_early, bool scales, const Uses& used) {
  const NoGrad unrecorded;
  Bucket& bucket = buckets_[b];
  next_ = b + 1;
  const double scale = scale_of(bucket.flat);
  if (scales && scale != 1) bucket.flat.mul_(scale);
  if (bucket.tail.defined()) {
    const bool is_last = pass_ + 1 == passes_;
    write_numbers(bucket.tail, is_last ? own_numbers(used) : std::vector<double>(static_cast<size_t>(numbers())));
  }
  if (!add_pass(bucket, pass_, passes_)) return;
  figures_.early += is_early;
  if (group_.defined())
    bucket.work = all_reduce(bucket.flat, ReduceOp::sum, {.group = group_, .async_op = true, .order = order_});
}

// used: by parameter, in this pass.
void DataParallelState::finish_now(const Uses& used, Uses* recorded) {
  const NoGrad unrecorded;
  in_pass_ = false;
  for (size_t i = 0; i < used.size(); ++i) used_before_[i] = static_cast<char>(used_before_[i] | used[i]);
  pass_ = (pass_ + 1) % passes_;
  tell_steps();
  if (pass_) return;
  exchange();
  ++figures_.steps;
  if (recorded) follow(*recorded);
  const double total = sums_[parameters_.size()];
  for (Bucket& bucket : buckets_) {
    const double mean = total > 0 ? unit_ / total / shrink(bucket.flat) : 1;
    if (mean != 1) bucket.flat.mul_(mean);
  }
}

// Of this rank, after a pass in which it used these parameters. Steps are counted to 2^16, so that f32 holds all sums.
std::vector<double> DataParallelState::own_numbers(const Uses& used) const {
  std::vector<double> numbers;
  for (size_t i = 0; i < used.size(); ++i) numbers.push_back(used_before_[i] || used[i]);
  numbers.push_back(weights_);
  numbers.push_back(static_cast<double>(figures_.steps % 65536));
  return numbers;
}

// Waits for the sums of the gradients, and of the ranks' numbers.
void DataParallelState::exchange() {
  const auto begin = Clock::now();
  for (Bucket& each : buckets_) each.work.wait();
  if (const Tensor& tail = buckets_.back().tail; tail.defined()) {
    sums_ = read_numbers(tail);
    // Of a group on a device that broke meanwhile, the sums are unfinished.
    if (group_.defined()) group_.state().require_whole(kDataParallel);
  } else {
    sums_ = own_numbers(used_before_);
    reduce_numbers(group_, sums_, PLUGRAD_REDUCE_SUM);
  }
  figures_.waited_seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  const double ranks = group_.defined() ? group_.size() : 1;
  if (sums_.back() != static_cast<double>(figures_.steps % 65536) * ranks)
    refuse(kDataParallel,
           "rank " + std::to_string(group_.rank()) + " is in step " + std::to_string(figures_.steps + 1) +
               ", and another rank is not: all ranks must make the same steps, also those without data (step_without_data)");
}

// In a replay: which parameters have a gradient is a part of the recording.
void DataParallelState::follow(Uses& recorded) const {
  Uses shared;
  for (size_t i = 0; i < parameters_.size(); ++i) shared.push_back(sums_[i] > 0);
  if (recorded.empty()) recorded = shared;
  const auto differs = std::ranges::mismatch(shared, recorded).in1 - shared.begin();
  if (differs == std::ssize(shared)) return;
  const auto i = static_cast<size_t>(differs);
  refuse(kDataParallel,
         "parameter " + std::to_string(i) + ", of shape " + parameters_[i].shape().text() +
             (shared[i] ? ", has a gradient in this step, and had none" : ", has no gradient in this step, and had one") +
             " when the step was compiled: where the parameters in use change, compile the model, and not the step");
}

}  // namespace plugrad::distributed
