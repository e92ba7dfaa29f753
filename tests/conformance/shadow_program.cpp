// shadow_program PLUGIN OP: runs an op on the device of a plugin's file and prints the result, or the error.
#include <plugrad/plugrad.hpp>

#include <iostream>

using namespace plugrad;

namespace {

Tensor result(const std::string& op, Device device) {
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}, device);
  if (op == "exp") return exp(transpose(x, 0, 1));
  if (op == "add") return x + 0.5;
  if (op == "uniform") return rand({7}, DType::f32, device);
  if (op == "gather") {  // along both axes, so that attributes differ
    const Tensor index = Tensor::from(std::vector<int64_t>{1, 0}, {2, 1}, device);
    return gather(x, 1, index) + gather(x, 0, index);
  }
  throw std::invalid_argument("there is no op " + op);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  try {
    const PluginRecord record = load_plugin(words[1]);
    manual_seed(7);
    std::cout << result(words[2], Device(record.name)) << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cout << error.what() << "\n";
    return 1;
  }
}
