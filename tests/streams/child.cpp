// The program that process_test.cpp runs: it ends or forks with work in flight. Exit status 0 means success.
#include <tests/streams/rig.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace plugrad::test {
namespace {
constexpr unsigned kPatience = 240;  // seconds until a hanging child is killed
Pinned arrived;
Ref<Storage> released_by_a_static;  // its destructor runs after main

// Runs after the core's exit handler, which must have waited for the work.
void check_arrived() {
  if (value_of(arrived) != 7) _exit(3);
}

int leave_with_work_in_flight() {
  std::atexit(check_arrived);
  DeviceState& d = shared_devices().first;
  released_by_a_static = make(d, kLargeBytes);
  arrived = transfer::pin(d, kLargeBytes);
  sim().set_latency(nullptr, 2000);
  for (int i = 0; i <= 7; ++i) fill(*released_by_a_static, static_cast<float>(i));
  transfer::download(arrived, *released_by_a_static, 0, kLargeBytes);
  return 0;
}

// A driver's exit handler runs before the core's, and finds work in flight unless the program has waited for it.
int leave_before_the_core(bool finishes) {
  DeviceState& d = shared_devices().first;
  released_by_a_static = make(d, kSmallBytes);
  sim().set_latency(nullptr, 20000);
  fill(*released_by_a_static, 1);
  std::atexit([] {
    if (streams::poll(*released_by_a_static->device->compute) < released_by_a_static->written) _exit(5);
  });
  if (finishes) streams::finish_all();
  return 0;
}
int leave_after_finishing() { return leave_before_the_core(true); }
int leave_without_finishing() { return leave_before_the_core(false); }

int leave_with_a_failure_nobody_saw() {
  DeviceState& d = shared_devices().first;
  released_by_a_static = make(d, kSmallBytes);
  sim().set_latency(nullptr, 1000);
  fill(*released_by_a_static, 1);
  sim().arm(d.handle, PLUGRAD_SIM_FAIL, 1);
  fill(*released_by_a_static, 2);
  return 0;
}

int leave_while_threads_submit() {
  DeviceState& d = shared_devices().first;
  static std::atomic<int> running{0};
  for (int t = 0; t < 3; ++t)
    std::thread([&d] {
      outcome([&] {
        const Ref<Storage> a = make(d, kSmallBytes);
        fill(*a, 1);
        ++running;
        for (;;) {
          add(*a, *a, *a);
          get(*a);
        }
      });
      for (;;) pause();
    }).detach();
  while (running < 3) std::this_thread::yield();
  return 0;
}

// Calls functions in a forked child. Returns one bit for each call that did not throw device_lost.
int enter_from_child(Storage& a) {
  DeviceState& d = *a.device;
  const auto refused = [](auto f) { return outcome(f).code == Code::device_lost; };
  int bad = 0;
  bad |= !refused([&] { fill(a, 1); }) << 0;
  bad |= !refused([&] { get(a); }) << 1;
  bad |= !refused([&] { upload(a, 1); }) << 2;
  bad |= !refused([&] { make(d, kLargeBytes); }) << 3;
  bad |= !refused([&] { streams::sync(*d.compute); }) << 4;
  bad |= !refused([&] { streams::verify(a); }) << 5;
  d.allocator.trim();
  return bad;
}

int fork_with_work_in_flight() {
  DeviceState& d = shared_devices().first;
  Ref<Storage> a = make(d, kLargeBytes), dropped = make(d, kLargeBytes);
  fill(*dropped, 1);
  sim().hold(d.handle, kCompute);
  for (int i = 0; i < 20; ++i) fill(*a, static_cast<float>(i));
  const uint64_t before = d.downloads;
  std::thread holder([&] { get(*a); });  // holds the copy stream's lock inside a copy during the fork
  while (d.downloads == before) std::this_thread::yield();
  usleep(2000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatience);
    const int bad = enter_from_child(*a);
    dropped = {};
    if (bad) _exit(0x40 | bad);
    std::exit(0);  // neither its exit handler nor its static destructors may hang
  }
  sim().hold(d.handle, 0);
  int status = -1;
  waitpid(child, &status, 0);
  holder.join();
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!well) std::fprintf(stderr, "the forked child ended with %x\n", static_cast<unsigned>(status));
  return well && get(*a) == 19 && sim().hazards() == 0 ? 0 : 4;
}

struct Mode {
  const char* name;
  int (*run)();
};
constexpr Mode kModes[] = {{"work", leave_with_work_in_flight},     {"finished", leave_after_finishing},
                           {"unfinished", leave_without_finishing}, {"failure", leave_with_a_failure_nobody_saw},
                           {"threads", leave_while_threads_submit}, {"fork", fork_with_work_in_flight}};
}  // namespace
}  // namespace plugrad::test

int main(int argc, char** argv) {
  alarm(plugrad::test::kPatience);
  for (const auto& mode : plugrad::test::kModes)
    if (argc == 2 && !std::strcmp(argv[1], mode.name)) return mode.run();
  return 64;
}
