// A device is lost at each op of a training: an error, no hang, and the training resumes on another device from its
// checkpoint.
#include <tests/io/scratch.hpp>
#include <tests/soak/children.hpp>
#include <tests/soak/simulated.hpp>

#include <plugrad/io/safetensors.hpp>
#include <plugrad/plugrad.hpp>

#include <cstdio>
#include <cstdlib>

namespace plugrad::test {
namespace {

constexpr int64_t kSteps = 3;
enum : int { kResumed = 0, kNotReached = 10, kOtherError = 11, kOtherResult = 12, kNoError = 13 };

struct Training {
  explicit Training(Device device) : on(device) { net.to(on); }
  std::map<std::string, Tensor> tensors() const {
    std::map<std::string, Tensor> all;
    for (const auto& [name, tensor] : net.state_dict()) all["net." + name] = tensor;
    for (const auto& [name, tensor] : optimizer.state()) all["optimizer." + name] = tensor;
    return all;
  }
  void save(const std::string& path) const {
    io::write_safetensors(path, tensors(), {{"steps", std::to_string(optimizer.steps())}});
  }
  void resume(const std::string& path) {
    const io::Safetensors file = io::read_safetensors(path, on);
    std::vector<nn::NamedTensor> parameters, state;
    for (const auto& [name, tensor] : file.tensors) {
      if (name.starts_with("net.")) parameters.push_back({name.substr(4), tensor});
      else state.push_back({name.substr(10), tensor});
    }
    net.load_state_dict(parameters);
    optimizer.load_state(state, std::stoll(file.metadata.at("steps")));
  }
  double step() {
    const Tensor x = reshape(sin(arange(0, 24, 1, DType::f32, on)), {4, 6}), y = arange(0, 4, 1, DType::i64, on);
    const Tensor loss = cross_entropy(net(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.item<double>();
  }

  Device on;
  nn::Sequential net{nn::Linear(6, 8), nn::LayerNorm({8}), nn::GELU(), nn::Linear(8, 4)};
  nn::AdamW optimizer{net.parameters(), 0.05};
};

// Trains from the checkpoint, if there is one, and saves it after each step. Returns the last loss.
double train(Device device, const std::string& checkpoint) {
  manual_seed(3);  // the seed of the CPU, which draws the first parameters
  Training training(device);
  if (std::filesystem::exists(checkpoint)) training.resume(checkpoint);
  double loss = 0;
  while (training.optimizer.steps() < kSteps) {
    loss = training.step();
    training.save(checkpoint);
  }
  return loss;
}

// Loses the first device at its k-th op, and continues the training on the second device.
int lose_at(uint64_t k, const std::string& folder) {
  const Device first = simulated::open(0), second = simulated::open(1);
  const double expected = train(second, folder + "/expected");
  const uint64_t before = simulated::calls(PLUGRAD_SIM_LOSE);
  simulated::sim().arm(simulated::handle(0), PLUGRAD_SIM_LOSE, k);
  try {
    train(first, folder + "/checkpoint");
    return simulated::calls(PLUGRAD_SIM_LOSE) - before < k ? kNotReached : kNoError;
  } catch (const Error& error) {
    const bool named = std::string(error.what()).find("sim:0") != std::string::npos;
    if (error.code() != Code::device_lost || !named) return std::fprintf(stderr, "%s\n", error.what()), kOtherError;
  }
  // If the loss came after the last checkpoint, there is nothing left to train.
  const double resumed = train(second, folder + "/checkpoint");
  const bool complete = read_file(folder + "/checkpoint") == read_file(folder + "/expected");
  return complete && (resumed == expected || resumed == 0) ? kResumed : kOtherResult;
}

TEST(Lost, AtEachOpOfATraining) {
  setenv("PLUGRAD_PROBE", "off", 1);  // only saves time
  uint64_t k = 1;
  for (;; ++k) {
    const Scratch scratch;
    const Ending ending = run_child([&] { return lose_at(k, scratch.folder()); });
    if (ending.text == "exit status 10") break;
    ASSERT_EQ(ending.text, "exit status 0") << "lost at op " << k;
  }
  EXPECT_GT(k, 60u);
}

}  // namespace
}  // namespace plugrad::test
