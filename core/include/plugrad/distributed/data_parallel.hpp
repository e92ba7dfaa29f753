// Data parallel training: each rank computes the gradients of its part of a batch, and all ranks get the mean.
#pragma once
#include <plugrad/distributed/collectives.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::distributed {

struct DataParallelOptions {
  Group group = {};  // undefined: all ranks; without init_process_group, this process alone
  // Gradients travel in pieces of at least so many bytes, the first a quarter as large. A piece starts as soon as its
  // gradients exist, while the backward pass goes on.
  uint64_t bucket_bytes = 4 << 20;
  // The number of backward passes of all ranks together that make up one step: a multiple of the number of ranks. Their
  // gradients are added as a binary tree, so the bits depend neither on the number of ranks (of powers of two) nor on the
  // communicator nor on bucket_bytes. 0: one pass of each rank.
  int slices = 0;
  Order order = Order::automatic;  // with slices: ordered
  // The weight that counts as 1, the same on all ranks; gradients are scaled by weight / unit on their way. 0: the largest
  // weight of the first passes.
  double unit = 0;
};

class DataParallelState;

struct DataParallelFigures {
  uint64_t steps = 0;
  size_t buckets = 0;
  uint64_t early = 0;         // buckets that started before their backward pass was over
  double waited_seconds = 0;  // after backward passes, for the other ranks and the engine
};

// While it lives, each backward() of the last pass of a step ends with gradients that are the mean over all passes of all
// ranks, weighted by set_weight(). Parameters that no rank used in a step have no gradient; those that only some ranks used
// have the mean with zeros. The gradients are views of the buckets, which the next step overwrites.
//
// All ranks make the same numbers of steps: a rank without data calls step_without_data(). Not thread-safe. The parameters
// must keep their devices and dtypes.
class PLUGRAD_API DataParallel {
 public:
  // Overwrites parameters and buffers by those of rank 0. Throws Error (invalid) if the ranks' parameters differ in number,
  // shape or dtype, or if slices does not fit the number of ranks.
  DataParallel(const std::vector<Tensor>& parameters, const std::vector<Tensor>& buffers,
               const DataParallelOptions& options = {});
  // The same for a module.
  template <class Module>
    requires requires(const Module& module) {
      { module.parameters() } -> std::convertible_to<std::vector<Tensor>>;
      module.named_buffers();
    }
  explicit DataParallel(const Module& module, const DataParallelOptions& options = {})
      : DataParallel(module.parameters(), tensors_of(module.named_buffers()), options) {}
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // The weight of the gradients of later passes of this rank, such as its number of samples where the loss is their mean.
  // Default: 1.
  void set_weight(double weight);
  // How many backward passes of this rank make up a step.
  int passes() const;
  // Takes part in a step, or in what is left of it, with nothing: the gradients are the mean of the other ranks'. Returns
  // whether any rank had data.
  bool step_without_data();
  // The same in one pass of a step.
  void pass_without_data();
  // Off: gradients only accumulate on this rank, and the next step reduces their sum.
  void set_synchronizing(bool on);
  bool synchronizing() const;
  // Overwrites the buffers by those of rank 0.
  void broadcast_buffers();
  // Which of the group's processes this is, of how many; 0 of 1 without a group.
  int rank() const;
  int size() const;
  // Returns the sums of numbers over all ranks, which all call it. No compiled step repeats it.
  std::vector<double> sum_over_ranks(std::vector<double> numbers) const;
  DataParallelFigures figures() const;

 private:
  template <class Named> static std::vector<Tensor> tensors_of(const Named& named) {
    std::vector<Tensor> tensors;
    for (const auto& each : named) tensors.push_back(each.tensor);
    return tensors;
  }
  std::shared_ptr<DataParallelState> state_;
};

// While it lives, gradients only accumulate on this rank.
class NoSync {
 public:
  explicit NoSync(DataParallel& of) : of_(of), before_(of.synchronizing()) { of_.set_synchronizing(false); }
  ~NoSync() { of_.set_synchronizing(before_); }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  DataParallel& of_;
  bool before_;
};

}  // namespace plugrad::distributed
