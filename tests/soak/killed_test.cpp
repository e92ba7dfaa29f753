// A process that is killed while it saves leaves the complete old file or the complete new file.
#include <tests/io/scratch.hpp>
#include <tests/soak/children.hpp>

#include <plugrad/io/safetensors.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace plugrad::test {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

void save(const std::string& path, int version, Device device) {
  const Tensor x = full({300, 100}, version, DType::f32, device), y = full({7}, version, DType::i64, device);
  io::write_safetensors(path, {{"x", x}, {"y", y}}, {{"version", std::to_string(version)}});
}

// Returns the version of a complete file, or -1 for any other file.
int version_of(const std::string& path) {
  const io::Safetensors file = io::read_safetensors(path, "reference");
  const int version = std::stoi(file.metadata.at("version"));
  const auto is_version = [version](auto value) { return static_cast<int>(value) == version; };
  const bool whole = std::ranges::all_of(file.tensors.at("x").to_vector<float>(), is_version) &&
                     std::ranges::all_of(file.tensors.at("y").to_vector<int64_t>(), is_version);
  return whole ? version : -1;
}

// Saves version after version until the process is killed. Writes a byte to `ready` when the first version is saved.
int save_for_ever(const std::string& path, int ready) {
  const Device device("reference");
  save(path, 0, device);
  if (write(ready, "", 1) != 1) return 1;
  for (int version = 1;; ++version) save(path, version, device);
}

// Returns the duration of one saving, measured in a process of its own.
nanoseconds time_of_saving(const std::string& path) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = start_child([&] {
    const Device device("reference");
    save(path, 0, device);
    const Clock::time_point start = Clock::now();
    for (int version = 1; version <= 20; ++version) save(path, version, device);
    const auto each = static_cast<int64_t>((Clock::now() - start).count() / 20);
    return write(pipe_ends[1], &each, sizeof each) == sizeof each ? 0 : 1;
  });
  int64_t each = 0;
  EXPECT_EQ(read(pipe_ends[0], &each, sizeof each), static_cast<ssize_t>(sizeof each));
  EXPECT_EQ(end_of(child).text, "exit status 0");
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return nanoseconds(each);
}

// Kills a process that saves, `delay` after its first file was saved.
void kill_after(const std::string& path, nanoseconds delay) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = start_child([&] { return save_for_ever(path, pipe_ends[1]); });
  char byte = 0;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 1);
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  EXPECT_EQ(end_of(child).text, "signal 9");
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

// The points are evenly spaced over the duration of three savings. The files are read at the end, because this process must
// not use plugrad before it forks.
TEST(Killed, AtAThousandPointsOfSaving) {
  setenv("PLUGRAD_PROBE", "off", 1);  // only saves time
  constexpr int kPoints = 1000;
  const Scratch scratch;
  const nanoseconds saving = time_of_saving(scratch.path("timed"));
  const auto path = [&](int i) { return scratch.path(std::to_string(i) + ".safetensors"); };
  for (int i = 0; i < kPoints; ++i) kill_after(path(i), 3 * saving * i / kPoints);
  std::map<int, int> versions;
  for (int i = 0; i < kPoints; ++i) {
    SCOPED_TRACE(path(i));
    const int version = version_of(path(i));
    EXPECT_GE(version, 0);
    ++versions[version];
  }
  size_t parts = 0;
  for (const std::string& name : scratch.names()) parts += name.ends_with(".part");
  std::printf("%d points, %zu in the middle of a file; %zu versions were left\n", kPoints, parts, versions.size());
  EXPECT_GT(parts, 50u) << "the points do not meet the saving";
  EXPECT_GT(versions.size(), 2u);
}

}  // namespace
}  // namespace plugrad::test
