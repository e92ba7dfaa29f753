#include <plugrad/io/file.hpp>
#include <tests/distributed/ranks.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace plugrad::test {
namespace pd = plugrad::distributed;
namespace {

// Of the first of these variables that a launcher has set.
int number(std::initializer_list<const char*> names) {
  for (const char* each : names)
    if (const char* text = std::getenv(each)) return std::atoi(text);
  return -1;
}

// Stops this process for 700 ms, with all its threads.
void pause() {
  const pid_t process = getpid();
  if (fork() == 0) {
    usleep(700'000);
    kill(process, SIGCONT);
    _exit(0);
  }
  std::raise(SIGSTOP);
}

// What happens to the last rank, or for "first" to rank 0, when it comes to its place.
class Fate {
 public:
  Fate(std::string how, int place) : how_(std::move(how)), left_(place) {
    const int rank = number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK"});
    is_meant_ = how_ == "first" ? rank == 0 : rank + 1 == number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"});
  }
  // Each call is a place.
  void pass() {
    if (left_-- != 0) return;
    if (how_ == "first" && !is_meant_) pause();
    if (!is_meant_) return;
    if (how_ == "kill") std::raise(SIGKILL);
    if (how_ == "stop") std::raise(SIGSTOP);
    if (how_ == "exit") _exit(0);
    if (how_ == "throw" || how_ == "first") throw std::runtime_error("the disk is full");
    if (how_ == "less") ends_ = true;
    if (how_ == "differ") pd::barrier();
    if (how_ == "part") io::write_file(std::string(std::getenv("PLUGRAD_TEST_FOLDER")) + "/part", "");
  }
  bool ends() const { return ends_; }

 private:
  std::string how_;
  int left_;
  bool is_meant_, ends_ = false;
};

// Steps like those of training: two buckets in flight, then a file.
void train(Fate& fate) {
  Tensor weight = full({64, 64}, 0.01);
  weight.requires_grad_();
  for (int step = 0; step < 5 && !fate.ends(); ++step) {
    const Tensor loss = sum(matmul(full({8, 64}, 1.0), weight));
    fate.pass();  // after the forward pass
    loss.backward();
    fate.pass();  // after the backward pass
    const Tensor first = full({1000}, 1.0), second = full({5000}, 1.0);
    pd::Work a = pd::all_reduce(first, pd::ReduceOp::sum, {.async_op = true});
    fate.pass();  // between buckets
    pd::Work b = pd::all_reduce(second, pd::ReduceOp::sum, {.async_op = true});
    a.wait();
    b.wait();
    weight.clear_grad();
    const char* folder = std::getenv("PLUGRAD_TEST_FOLDER");
    if (folder) io::write_file(std::string(folder) + "/saved." + std::to_string(pd::get_rank()), std::string(100000, 'x'));
    fate.pass();  // after saving
  }
}
}  // namespace

int fail_somewhere(const std::string& how, int place) {
  Fate fate(how, place);
  try {
    fate.pass();
    pd::init_process_group();
    train(fate);
    pd::destroy_process_group();
  } catch (const Error& error) {
    std::printf("survivor: %s\n", error.what());
    std::fflush(stdout);
    return 3;
  } catch (const std::exception& error) {
    pd::abort_process_group(error.what());
    return 4;
  }
  return 0;
}

}  // namespace plugrad::test
