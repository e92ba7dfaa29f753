// Times small steps, eager and compiled, in turns: replaying a recording saves the time of dispatch.
#include <plugrad/plugrad.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace plugrad {
namespace {

constexpr int kRounds = 15;
using Clock = std::chrono::steady_clock;

double nanoseconds(const std::function<void()>& f, int calls) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < calls; ++i) f();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / calls;
}

double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

// Times both in turns, after enough calls to record. per: the number of steps in one call.
void row(const char* name, const std::function<void()>& eager, const std::function<void()>& compiled, int calls, int per) {
  for (int i = 0; i < 8; ++i) compiled();
  std::vector<double> of_eager, of_compiled;
  for (int i = 0; i < kRounds; ++i) {
    of_eager.push_back(nanoseconds(eager, calls) / per);
    of_compiled.push_back(nanoseconds(compiled, calls) / per);
  }
  const double before = median(of_eager), after = median(of_compiled);
  std::printf("| %-44s | %8.1f ns | %8.1f ns | %5.2f |\n", name, before, after, before / after);
  std::fflush(stdout);
}

// The step of the moons demo: 2-16-16-1, hinge loss, 100 points.
void moons() {
  manual_seed(1);
  nn::Sequential net{nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 1)};
  nn::SGD optimizer(net.parameters(), 0.01);
  const Tensor x = rand({100, 2}), y = where(gt(rand({100, 1}), 0.5), ones({100, 1}), neg(ones({100, 1})));
  const auto step = [&](const Tensor& in, const Tensor& labels) {
    optimizer.zero_grad();
    Tensor loss = mean(relu(1 - labels * net(in)));
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto compiled = compile(step);
  row("moons: a step, its loss read", [&] { step(x, y).item<float>(); }, [&] { compiled(x, y).item<float>(); }, 2000, 1);
  // Batches as from a data loader, each in its own memory.
  std::vector<Tensor> batches;
  for (int i = 0; i < 16; ++i) batches.push_back(rand({100, 2}));
  size_t turn = 0;
  const auto batch = [&]() -> const Tensor& { return batches[++turn % batches.size()]; };
  row("moons: a step, another batch each time", [&] { step(batch(), y); }, [&] { compiled(batch(), y); }, 2000, 1);
}

void chain_of(int ops) {
  const Tensor x = ones({1}), w = ones({1});
  const auto chain = [&] {
    Tensor y = x;
    for (int i = 0; i < ops; ++i) y = y + w;
    return y;
  };
  auto compiled = compile(chain);
  const std::string name = "add of one element, in a chain of " + std::to_string(ops);
  row(name.c_str(), [&] { chain(); }, [&] { compiled(); }, 40'000 / ops, ops);
}

void small_ops() {
  constexpr int kOps = 100;
  for (const int ops : {4, kOps}) chain_of(ops);
  const Tensor w = ones({1});
  Tensor leaf = ones({1}).requires_grad_();
  const auto both = [&] {
    leaf.clear_grad();
    Tensor y = leaf;
    for (int i = 0; i < kOps; ++i) y = y * w;
    y.backward();
  };
  auto compiled_both = compile(both);
  row("mul of one element and its gradient", both, [&] { compiled_both(); }, 1000, kOps);
}

}  // namespace
}  // namespace plugrad

int main(int argc, char** argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: bench_compiled [DEVICE]\n");
    return 2;
  }
  try {
    if (argc == 2) plugrad::set_default_device(plugrad::Device(argv[1]));
  } catch (const plugrad::Error& error) {
    std::fprintf(stderr, "bench_compiled: %s\n", error.what());
    return 1;
  }
  std::printf("| work | eager | compiled | times faster |\n|---|---|---|---|\n");
  plugrad::moons();
  plugrad::small_ops();
}
