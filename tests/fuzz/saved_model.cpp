#include <tests/fuzz/target.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/io/saved_model.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/convolution.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/pooling.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/sorting.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad::test {

std::vector<std::string> fuzz_seeds() {
  const Device host("reference");
  const NoGrad unrecorded;
  const auto file = [&](const auto& f, const Tensor& x) {
    auto step = compile(f);
    step(x);
    return bytes_written_by([&](const std::string& path) { save_model(step, path); });
  };
  const Tensor w = rand({3, 4}, DType::f32, host), filter = rand({2, 1, 3, 3}, DType::f32, host);
  return {file([&](const Tensor& x) { return softmax(relu(matmul(x, w) + 1), 1); }, rand({2, 3}, DType::f32, host)),
          file([&](const Tensor& x) { return sum(max_pool2d(conv2d(x, filter), {2}), {2, 3}); },
               rand({1, 1, 6, 6}, DType::f32, host)),
          file(
              [&](const Tensor& x) {
                Tensor y = zeros({4, 3}, DType::f32, host);
                slice(y, 0, 1, 3).copy_(x);
                return gather(cumsum(y, 0), 1, argsort(y, 1));
              },
              rand({2, 3}, DType::f32, host))};
}

// The file begins with the length of its header.
void fuzz_repair(std::string& bytes, int64_t grown) { add_to_number(bytes, 0, sizeof(uint64_t), grown); }

}  // namespace plugrad::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  return test::read_file_of(bytes, count, [](const std::string& path) {
    const Device host("reference");
    const SavedModel model = load_model(path, host);
    std::vector<Tensor> inputs;
    for (const ModelTensor& each : model.inputs()) inputs.push_back(zeros(each.shape, each.dtype, host));
    for (int i = 0; i < 2; ++i) model(inputs);
  });
}
