// Compares all_reduce of plugrad over Gloo with Gloo itself, in turns in one run of two processes or more:
//
//   plugrad launch -n 2 build/bench/bench_collectives
//
// Rank 0 prints the median and the lower quartile of a round, of plugrad and of Gloo, and the ratios. Both reduce f32 in
// place. Where ranks and their engines' threads have too few cores, many rounds of either contain a slice of the scheduler,
// some 3 ms; the quartile shows the rounds without.
#include <plugrad/plugrad.hpp>

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {
namespace pd = plugrad::distributed;
using Clock = std::chrono::steady_clock;

std::shared_ptr<gloo::Context> connected() {
  gloo::transport::tcp::attr attr;
  attr.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attr);
  auto context = std::make_shared<gloo::rendezvous::Context>(pd::get_rank(), pd::get_world_size());
  const std::string meeting = std::string(std::getenv("PLUGRAD_STORE")).substr(7) + "/bench";
  std::filesystem::create_directories(meeting);
  gloo::rendezvous::FileStore store(meeting);
  context->connectFullMesh(store, device);
  return context;
}

template <class F> double milliseconds(F f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(part * static_cast<double>(values.size()))];
}

void compare(const std::shared_ptr<gloo::Context>& context, int64_t count, int rounds) {
  const plugrad::Tensor x = plugrad::zeros({count});
  std::vector<float> y(static_cast<size_t>(count));
  uint32_t tag = 0;
  const auto by_gloo = [&] {
    gloo::AllreduceOptions options(context);
    options.setOutput(y.data(), y.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    options.setTag(++tag);
    gloo::allreduce(options);
  };
  std::vector<double> ours, theirs;
  for (int i = -3; i < rounds; ++i) {
    pd::barrier();
    const double here = milliseconds([&] { pd::all_reduce(x); });
    pd::barrier();
    const double there = milliseconds(by_gloo);
    if (i < 0) continue;  // a warm-up
    ours.push_back(here);
    theirs.push_back(there);
  }
  if (pd::get_rank() == 0)
    std::printf("| %.2f MB | %.3f, %.3f ms | %.3f, %.3f ms | %.2f, %.2f |\n", static_cast<double>(count) * 4e-6,
                quantile(ours, 0.5), quantile(ours, 0.25), quantile(theirs, 0.5), quantile(theirs, 0.25),
                quantile(ours, 0.5) / quantile(theirs, 0.5), quantile(ours, 0.25) / quantile(theirs, 0.25));
}
}  // namespace

int main() {
  pd::init_process_group();
  const auto context = connected();
  if (pd::get_rank() == 0) std::printf("| all_reduce of f32 | plugrad | Gloo itself | ratio |\n|---|---|---|---|\n");
  for (const int64_t count : {250, 25000, 262144, 1048576, 4194304, 16777216})
    compare(context, count, count > 2000000 ? 15 : 200);
  pd::destroy_process_group();
}
