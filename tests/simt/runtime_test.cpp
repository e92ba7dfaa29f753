// Streams, events, copies, errors and devices behave as CUDA's manual specifies.
#include <simt/control.hpp>
#include <tests/simt/kernels.hpp>
#include <tests/simt/memory_of.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace simt::test {
namespace {

// Blocks a stream until the test releases it.
class Hold {
 public:
  explicit Hold(cudaStream_t stream) {
    EXPECT_EQ(cudaLaunchHostFunc(stream, [](void* self) { static_cast<Hold*>(self)->work(); }, this), cudaSuccess);
  }
  ~Hold() {
    let_go();
    left_.wait(false);
  }
  void let_go() {
    open_ = true;
    open_.notify_all();
  }

 private:
  void work() {
    open_.wait(false);
    left_ = true;
    left_.notify_all();
  }
  std::atomic<bool> open_{false}, left_{false};
};

__global__ void set(int* out, int value) { *out = value; }
__global__ void add_one(int* out) { *out += 1; }

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    for (cudaStream_t* stream : {&first_, &second_})
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&word_, sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&pinned_, sizeof(int)), cudaSuccess);
    *pinned_ = -1;
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (cudaStream_t stream : {first_, second_}) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaFree(word_), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned_), cudaSuccess);
  }
  cudaError_t fetch(cudaStream_t stream) {
    return cudaMemcpyAsync(pinned_, word_, sizeof(int), cudaMemcpyDeviceToHost, stream);
  }

  cudaStream_t first_ = nullptr, second_ = nullptr;
  int *word_ = nullptr, *pinned_ = nullptr;
};

TEST_F(Runtime, AStreamIsLateAndInOrder) {
  Hold hold(first_);
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 5);
  PLUGRAD_LAUNCH(add_one, 1, 1, 0, first_, word_);
  EXPECT_EQ(fetch(first_), cudaSuccess);
  EXPECT_EQ(*pinned_, -1) << "nothing ran yet";
  EXPECT_EQ(cudaStreamQuery(first_), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady) << "CUDA takes this for an error too";
  hold.let_go();
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(first_), cudaSuccess);
  EXPECT_EQ(*pinned_, 6);
}

TEST_F(Runtime, StreamsDoNotWaitForEachOther) {
  Hold hold(first_);
  PLUGRAD_LAUNCH(set, 1, 1, 0, second_, word_, 7);
  EXPECT_EQ(fetch(second_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_EQ(*pinned_, 7);
  EXPECT_EQ(cudaStreamQuery(first_), cudaErrorNotReady);
  cudaGetLastError();
  hold.let_go();
}

TEST_F(Runtime, AnEventOrdersTwoStreams) {
  cudaEvent_t event;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  Hold hold(first_);
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 8);
  EXPECT_EQ(cudaEventRecord(event, first_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  cudaGetLastError();
  EXPECT_EQ(cudaStreamWaitEvent(second_, event, 0), cudaSuccess);
  PLUGRAD_LAUNCH(add_one, 1, 1, 0, second_, word_);
  EXPECT_EQ(fetch(second_), cudaSuccess);
  hold.let_go();
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_EQ(*pinned_, 9);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

// A second recording moves an event to the later point; an earlier wait still waits for the earlier point.
TEST_F(Runtime, AWaitIsForTheRecordBeforeIt) {
  cudaEvent_t event;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, first_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(second_, event, 0), cudaSuccess);
  Hold hold(first_);
  EXPECT_EQ(cudaEventRecord(event, first_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  cudaGetLastError();
  hold.let_go();
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(Runtime, TheNullStreamIsInStepWithBlockingStreams) {
  cudaStream_t blocking;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  Hold hold(blocking);
  PLUGRAD_LAUNCH(set, 1, 1, 0, blocking, word_, 1);
  PLUGRAD_LAUNCH(add_one, 1, 1, 0, nullptr, word_);
  PLUGRAD_LAUNCH(add_one, 1, 1, 0, blocking, word_);
  EXPECT_EQ(fetch(blocking), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  cudaGetLastError();
  hold.let_go();
  EXPECT_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
  EXPECT_EQ(*pinned_, 3);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_F(Runtime, PageableMemoryMakesTheHostWait) {
  int plain = 0;
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 4);
  EXPECT_EQ(cudaMemcpyAsync(&plain, word_, sizeof(int), cudaMemcpyDeviceToHost, first_), cudaSuccess);
  EXPECT_EQ(plain, 4);
}

TEST_F(Runtime, CopiesKnowWhoseMemoryItIs) {
  int plain = 0, more[64] = {};
  EXPECT_EQ(cudaMemcpy(&plain, word_, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(word_, &plain, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(word_, &plain, 4, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(word_, &more, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue) << "past the end";
  EXPECT_EQ(cudaMemset(word_, 0, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(&plain, 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(&plain), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  plain = 12;
  EXPECT_EQ(cudaMemcpy(word_, &plain, 4, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(&more[3], word_, 4, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(more[3], 12);
}

TEST_F(Runtime, RowsAreCopiedAndSetByPitch) {
  const Buffer<int> table(std::vector<int>(20, 9));
  EXPECT_EQ(cudaMemset2DAsync(table.get() + 1, 20, 0, 8, 4, first_), cudaSuccess);
  std::vector<int> got(8);
  EXPECT_EQ(cudaMemcpy2DAsync(got.data(), 8, table.get(), 20, 8, 4, cudaMemcpyDeviceToHost, first_), cudaSuccess);
  EXPECT_EQ(got, (std::vector<int>{9, 0, 9, 0, 9, 0, 9, 0}));
}

TEST_F(Runtime, DevicesHaveMemoryOfTheirOwnAndCopyToEachOther) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_EQ(count, 2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  int* there = nullptr;
  ASSERT_EQ(cudaMalloc(&there, 4), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 31);
  EXPECT_EQ(cudaMemcpyPeerAsync(there, 1, word_, 0, 4, first_), cudaSuccess);
  EXPECT_EQ(cudaMemcpyPeerAsync(there, 0, word_, 1, 4, first_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(pinned_, there, 4, cudaMemcpyDeviceToHost, first_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(*pinned_, 31);
  EXPECT_EQ(cudaFree(there), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle) << "the stream is another device's";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  cudaGetLastError();
}

TEST_F(Runtime, MemoryHasAnEnd) {
  size_t free_bytes = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_EQ(total, settings().memory << 20);
  void* all = nullptr;
  EXPECT_EQ(cudaMalloc(&all, total), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "it is not sticky";
  EXPECT_EQ(cudaMalloc(&all, 1 << 20), cudaSuccess);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(all) % 256, 0u);
  size_t less = 0;
  EXPECT_EQ(cudaMemGetInfo(&less, &total), cudaSuccess);
  EXPECT_EQ(free_bytes - less, size_t{1} << 20);
  EXPECT_EQ(cudaFree(all), cudaSuccess);
  EXPECT_EQ(cudaFree(all), cudaErrorInvalidValue) << "twice";
}

// Captured work runs only when the graph is launched, once for each launch, and with other arguments after an update.
TEST_F(Runtime, AGraphRunsWhatAStreamCaptured) {
  const auto capture = [&](int value) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, value);
    PLUGRAD_LAUNCH(add_one, 1, 1, 0, first_, word_);
    EXPECT_EQ(cudaStreamEndCapture(first_, &graph), cudaSuccess);
    return graph;
  };
  const auto result = [&](cudaGraphExec_t executable) {
    EXPECT_EQ(cudaGraphLaunch(executable, second_), cudaSuccess);
    EXPECT_EQ(fetch(second_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
    return *pinned_;
  };
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 40);
  const cudaGraph_t graph = capture(5), other = capture(8);
  fetch(first_);
  cudaStreamSynchronize(first_);
  EXPECT_EQ(*pinned_, 40);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(result(executable), 6);
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_EQ(cudaGraphExecUpdate(executable, other, &info), cudaSuccess);
  EXPECT_EQ(result(executable), 9);
  for (const cudaGraph_t each : {graph, other}) EXPECT_EQ(cudaGraphDestroy(each), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(Runtime, ACaptureRefusesWhatAGraphCannotHave) {
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(first_, &graph), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, first_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(first_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(Runtime, FaultsAreInjected) {
  void* memory = nullptr;
  inject(Injection::malloc_fails, 2);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  cudaGetLastError();

  inject(Injection::launch_refused, 1);
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 1);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);

  inject(Injection::launch_faults, 1);
  PLUGRAD_LAUNCH(set, 1, 1, 0, first_, word_, 2);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaErrorIllegalAddress);
  EXPECT_NE(last_fault().find("kernel set"), std::string::npos);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamQuery(second_), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  clear_fault();
  ASSERT_EQ(cudaMalloc(&word_, 4), cudaSuccess);
}

TEST_F(Runtime, ErrorsHaveNamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(cudaError_t(12345)), "unrecognized error code");
}

TEST(Settings, AreReadFromOneLine) {
  Settings read;
  read_settings("devices=3,,seed=7", read);
  EXPECT_EQ(read.devices, 3u);
  EXPECT_EQ(read.seed, 7u);
  EXPECT_THROW(read_settings("device=3", read), std::invalid_argument);
  EXPECT_THROW(read_settings("devices=many", read), std::invalid_argument);
}

// Runs in its own process, in which the first use of a device reads the settings.
[[noreturn]] void look(const char* text, cudaError_t error, int driver) {
  setenv("PLUGRAD_SIMT", text, 1);
  int count = -1, version = -1;
  void* memory = nullptr;
  const bool right = cudaGetDeviceCount(&count) == error && count == 0 && cudaDriverGetVersion(&version) == cudaSuccess &&
                     version == driver && cudaMalloc(&memory, 4) == error;
  std::_Exit(right ? 0 : 1);
}
TEST(NoDeviceDeathTest, EachReasonHasItsError) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(look("devices=0", cudaErrorInsufficientDriver, 0), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(look("driver=12040", cudaErrorInsufficientDriver, 12040), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(look("devices=0,driver=13020", cudaErrorNoDevice, 13020), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace simt::test
