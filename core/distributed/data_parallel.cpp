#include <plugrad/distributed/data_parallel.hpp>

#include <core/distributed/collective_start.hpp>
#include <core/distributed/data_parallel_state.hpp>

namespace plugrad::distributed {

DataParallel::DataParallel(const std::vector<Tensor>& parameters, const std::vector<Tensor>& buffers,
                           const DataParallelOptions& options)
    : state_(std::make_shared<DataParallelState>(parameters, buffers, options)) {
  state_->add_hooks();
}
DataParallel::~DataParallel() = default;
void DataParallel::set_weight(double weight) { state_->set_weight(weight); }
int DataParallel::passes() const { return state_->passes(); }
bool DataParallel::step_without_data() { return state_->step_without_data(); }
void DataParallel::pass_without_data() { state_->pass_without_data(); }
void DataParallel::set_synchronizing(bool on) { state_->set_synchronizing(on); }
bool DataParallel::synchronizing() const { return state_->synchronizes(); }
void DataParallel::broadcast_buffers() { state_->broadcast(state_->buffers); }
int DataParallel::rank() const { return state_->group().defined() ? state_->group().rank() : 0; }
int DataParallel::size() const { return state_->group().defined() ? state_->group().size() : 1; }
std::vector<double> DataParallel::sum_over_ranks(std::vector<double> numbers) const {
  reduce_numbers(state_->group(), numbers, PLUGRAD_REDUCE_SUM);
  return numbers;
}
DataParallelFigures DataParallel::figures() const { return state_->figures(); }

}  // namespace plugrad::distributed
