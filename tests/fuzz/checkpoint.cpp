// Checkpoints of `plugrad train`, whose metadata configure a run.
#include <tests/fuzz/target.hpp>

#include <tools/train/trainer.hpp>

#include <algorithm>

namespace plugrad::test {
namespace {

const training::Data& moons() {
  static const training::Data data = training::load_data(training::default_config("moons"));
  return data;
}

training::TrainingConfig small_config() {
  training::TrainingConfig config = training::default_config("moons");
  config.hidden = {4};
  return config;
}

// A valid file may describe a large network; allocating it here would only take time.
bool is_small(const training::TrainingConfig& config) {
  return config.data == "moons" && config.hidden.size() < 10 &&
         std::ranges::all_of(config.hidden, [](int64_t width) { return width <= 64; });
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  training::Trainer trainer(small_config(), moons(), Device("reference"));
  const auto saved = [&] { return bytes_written_by([&](const std::string& path) { trainer.save(path); }); };
  const std::string before = saved();
  trainer.run_steps(3);
  return {before, saved()};
}

void fuzz_repair(std::string& bytes, int64_t grown) { add_to_number(bytes, 0, sizeof(uint64_t), grown); }

}  // namespace plugrad::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  using namespace plugrad::test;
  return read_file_of(bytes, count, [](const std::string& path) {
    const training::CheckpointOrigin origin = training::read_origin(path);
    if (!is_small(origin.config)) return;
    training::Trainer trainer(origin.config, moons(), Device("reference"));
    trainer.load(path);
    trainer.run_epoch_steps(1);
  });
}
