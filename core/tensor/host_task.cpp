#include <core/tensor/host_task.hpp>

#include <core/runtime/observe/observer.hpp>
#include <core/tensor/impl.hpp>
#include <core/tensor/tensor_transform.hpp>

#include <utility>

namespace plugrad {
void HostTask::run(const plugrad_op& op, Storage* const* storages) {
  std::vector<Tensor> operands;
  for (int i = 0; i < op.outputs + op.inputs; ++i) operands.push_back(tensor_over(*storages[i], *op.views[i]));
  call(operands);
}

void run_in_step(const std::shared_ptr<HostTask>& task, const std::vector<Tensor>& outputs,
                 const std::vector<Tensor>& inputs) {
  std::vector<Tensor> operands = outputs;
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  if (TensorTransform* const inside = transform_of(operands)) {
    const stand_ins::Below below(*inside);
    return inside->run_task(task, outputs, inputs);
  }
  if (!observe::is_recorded()) return task->call(operands);
  std::vector<const plugrad_view*> views;
  std::vector<Storage*> storages;
  for (const Tensor& each : operands) {
    views.push_back(&view_of(each));
    storages.push_back(storage_of(each));
  }
  plugrad_op op{};
  op.struct_size = sizeof op;
  op.views = views.data();
  op.outputs = static_cast<uint16_t>(outputs.size());
  op.inputs = static_cast<uint16_t>(inputs.size());
  local().observer->run_host(task, operands.empty() ? nullptr : &device_of(operands[0]), op, storages.data());
}

}  // namespace plugrad
