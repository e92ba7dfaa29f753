#include <plugrad/distributed/data_parallel.hpp>

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
DataParallelFigures DataParallel::figures() const { return state_->figures(); }

}  // namespace plugrad::distributed
