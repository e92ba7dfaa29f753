#include <core/io/onnx/ops/tables.hpp>

#include <string>
#include <unordered_map>

namespace plugrad::io::onnx {
namespace {

using Table = std::unordered_map<std::string_view, const Operator*>;

Table all_operators() {
  Table all;
  for (const auto& each :
       {activation_operators(), attention_operators(), combining_operators(),    constant_operators(),
        contrib_operators(),    control_operators(),   convolution_operators(),  elementwise_operators(),
        indexing_operators(),   integer_operators(),   loss_operators(),         normalization_operators(),
        pooling_operators(),    product_operators(),   quantization_operators(), quantized_contrib_operators(),
        random_operators(),     recurrent_operators(), reduction_operators(),    region_operators(),
        resizing_operators(),   scatter_operators(),   sequence_operators(),     shape_operators(),
        signal_operators(),     training_operators()})
    for (const Operator& op : each) all[op.name] = &op;
  return all;
}
}  // namespace

const Operator* find_operator(const std::string& domain, const std::string& name) {
  static const Table all = all_operators();
  const auto found = all.find(domain.empty() ? name : domain + "." + name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace plugrad::io::onnx
