// The state of DataParallel, and its work in each pass.
#pragma once
#include <core/autograd/hooks.hpp>
#include <core/distributed/buckets.hpp>
#include <core/distributed/group.hpp>
#include <plugrad/distributed/data_parallel.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::distributed {

inline constexpr const char* kDataParallel = "DataParallel";  // in messages

// By parameter: whether a rank, or any rank, used it.
using Uses = std::vector<char>;

class DataParallelState : public std::enable_shared_from_this<DataParallelState> {
 public:
  DataParallelState(const std::vector<Tensor>& parameters, const std::vector<Tensor>& buffers,
                    const DataParallelOptions& options);
  ~DataParallelState();
  void add_hooks();
  void broadcast(const std::vector<Tensor>& tensors) const;
  bool step_without_data();
  bool pass_without_data();
  void set_weight(double weight);
  void set_synchronizing(bool on);

  int passes() const { return passes_; }
  const Group& group() const { return group_; }
  bool synchronizes() const { return synchronizes_; }
  const DataParallelFigures& figures() const { return figures_; }
  const std::vector<Tensor> buffers;

 private:
  // One call of a compiled step.
  struct StepTask {
    std::string text;
    std::function<void(DataParallelState&)> run;
    bool is_in_flight = false;  // the engine works on after run()
  };
  class StepCall;

  void require_equal(uint64_t form) const;
  void place();
  void arrived(size_t i, const Tensor& grad);
  void stored();
  void begin(bool has_data);
  void fill(Bucket& bucket, size_t place, const Tensor& grad);
  void complete(Bucket& bucket);
  void start_full(bool all);
  bool end_pass();
  void share();
  void order_by_arrival();

  // --- What replays do again.
  // Runs a task now, and in each replay of the step that this thread records. memory: what the task reads and writes.
  void in_step(const std::vector<Tensor>& memory, StepTask task);
  void begin_now(bool has_data);
  void start_now(size_t bucket, bool is_early, bool scales, const Uses& used);
  void finish_now(const Uses& used, Uses* recorded);
  void exchange();
  // What ranks tell each other in a step: whether they used each parameter, their weights, their steps.
  int64_t numbers() const { return std::ssize(parameters_) + 2; }
  std::vector<double> own_numbers(const Uses& used) const;
  void follow(Uses& recorded) const;
  // Makes compiled steps depend on the place in a step, and on no_sync.
  void tell_steps();

  double scale_of(const Tensor& x) const { return weight_ / unit_ * shrink(x); }
  // Sums of halves are of parts of the gradients: they may overflow where their mean does not.
  double shrink(const Tensor& x) const;

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
  bool is_ordered_ = false;

  double weight_ = 1;
  bool synchronizes_ = true;
  const uint64_t id_;
  uint64_t told_ = 0;  // see tell_steps

  double unit_;  // the weight that counts as 1, equal on all ranks; 0: not known yet
  bool in_pass_ = false;
  int pass_ = 0;                          // of the step
  size_t next_ = 0;                       // the bucket to start next
  Uses used_before_;                      // in the passes of the step before the running one
  double weights_ = 0, pass_weight_ = 0;  // of the passes of the step, and of the running pass
  DataParallelFigures figures_;
  std::vector<double> sums_;  // of the last step, over all ranks: uses of each parameter, weights, numbers of steps
  // Of the running pass:
  bool has_data_ = true;
  size_t hooked_ = 0, stored_ = 0;  // gradients
  Uses arrived_;
  Uses used_;                       // has arrived, or has a gradient from before
  std::shared_ptr<Uses> recorded_;  // in a compiled step: by all ranks, once the step is over; null: no step is recorded
};

}  // namespace plugrad::distributed
