// Arrays of another library on the same device, whose stream is slow: imports wait for that stream, and it waits for
// exports.
#include <plugrad/sdk/native.h>
#include <plugrad/backends/cuda.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/tensor/dlpack.hpp>
#include <simt/control.hpp>

#include <gtest/gtest.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace plugrad::test {
namespace {

constexpr int64_t kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(float);

void demand(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorName(error); }
// Sleeps long enough that work without a wait completes.
void linger() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

// Blocks a stream until the test releases it.
class Hold {
 public:
  explicit Hold(cudaStream_t stream) {
    demand(cudaLaunchHostFunc(stream, [](void* self) { static_cast<Hold*>(self)->work(); }, this));
  }
  ~Hold() {
    let_go();
    left_.wait(false);
  }
  Hold(const Hold&) = delete;
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

// The other library: a stream, an array of zeros on device 0, and pinned memory for copies to and from the device.
struct Library {
  Library() {
    demand(cudaSetDevice(0));
    demand(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    demand(cudaMalloc(&memory, kBytes));
    demand(cudaMallocHost(&pinned, kBytes));
    demand(cudaMemset(memory, 0, kBytes));
    demand(cudaDeviceSynchronize());
    managed.array = {memory, {2, 0}, 1, {2, 32, 1}, &extent, nullptr, 0};
    managed.context = this;
    managed.deleter = [](dlpack::Managed* self) { ++static_cast<Library*>(self->context)->released; };
  }
  ~Library() {
    demand(cudaStreamDestroy(stream));
    demand(cudaFree(memory));
    demand(cudaFreeHost(pinned));
  }
  Library(const Library&) = delete;

  void fill(float value, cudaStream_t on) {
    std::fill_n(pinned, kCount, value);
    demand(cudaMemcpyAsync(memory, pinned, kBytes, cudaMemcpyHostToDevice, on));
  }
  void read(const dlpack::Managed& from) {
    std::fill_n(pinned, kCount, -1.0f);
    demand(cudaMemcpyAsync(pinned, from.array.data, kBytes, cudaMemcpyDeviceToHost, stream));
  }

  cudaStream_t stream = nullptr;
  float *memory = nullptr, *pinned = nullptr;
  int64_t extent = kCount;
  dlpack::Managed managed{};
  std::atomic<int> released{0};
};

class Native : public testing::Test {
 protected:
  static void SetUpTestSuite() { add_backend(plugrad_cuda_backend(host())); }
  cudaStream_t ours() const { return static_cast<cudaStream_t>(*dlpack::stream_of(device)); }
  void TearDown() override { EXPECT_EQ(simt::last_fault(), ""); }
  const Device device{"cuda-emu"};
};

std::vector<float> all(float value) { return std::vector<float>(kCount, value); }

// Doubles an array that a producer fills late on one of its streams, imported with this order.
std::vector<float> doubled_late(cudaStream_t producer, const Device& device, dlpack::Order order) {
  Library library;
  Hold late(producer);
  library.fill(3, producer);
  const Tensor x = dlpack::import_managed(&library.managed, device, order), sum = x + x;
  linger();
  late.let_go();
  std::vector<float> values = sum.to_vector<float>();
  demand(cudaStreamSynchronize(producer));
  return values;
}

TEST_F(Native, AnImportComesAfterTheProducersStream) {
  cudaStream_t producer = nullptr;
  demand(cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking));
  EXPECT_EQ(doubled_late(producer, device, dlpack::Order::stream(producer)), all(6));
  EXPECT_EQ(doubled_late(producer, device, dlpack::Order::none()), all(0)) << "the producer was not late";
  demand(cudaStreamDestroy(producer));
}

TEST_F(Native, AnImportComesAfterTheDefaultStreams) {
  EXPECT_EQ(doubled_late(nullptr, device, dlpack::Order::stream(nullptr)), all(6));
  EXPECT_EQ(doubled_late(cudaStreamLegacy, device, dlpack::Order::stream(cudaStreamLegacy)), all(6));
  EXPECT_EQ(doubled_late(cudaStreamPerThread, device, dlpack::Order::stream(cudaStreamPerThread)), all(6));
  cudaStream_t blocking = nullptr;
  demand(cudaStreamCreate(&blocking));
  EXPECT_EQ(doubled_late(blocking, device, dlpack::Order::stream(nullptr)), all(6));
  demand(cudaStreamDestroy(blocking));
}

TEST_F(Native, AnImportIsOrderedUnlessItSaysOtherwise) {
  Library library;
  Hold late(nullptr);
  library.fill(4, nullptr);
  const Tensor x = dlpack::import_managed(&library.managed), copy = x + 1;
  linger();
  late.let_go();
  EXPECT_EQ(copy.to_vector<float>(), all(5));
}

// A producer can make the consumer's stream wait, as PyTorch does with the stream that it receives.
TEST_F(Native, AProducerMakesOurStreamWait) {
  Library library;
  cudaEvent_t filled = nullptr;
  demand(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  Hold late(library.stream);
  library.fill(2, library.stream);
  demand(cudaEventRecord(filled, library.stream));
  demand(cudaStreamWaitEvent(ours(), filled));
  const Tensor x = dlpack::import_managed(&library.managed, device, dlpack::Order::stream(ours()));
  std::thread([&] {
    linger();
    late.let_go();
  }).detach();
  EXPECT_EQ(x.to_vector<float>(), all(2));  // uses the copy stream only
  demand(cudaEventDestroy(filled));
}

TEST_F(Native, AConsumersStreamComesAfterAnExport) {
  Library consumer;
  const Tensor x = full({kCount}, 1, DType::f32, device);
  Hold late(ours());
  const Tensor sum = x + x;
  dlpack::Managed* managed = dlpack::export_managed(sum, dlpack::Order::stream(consumer.stream));
  consumer.read(*managed);
  linger();
  EXPECT_EQ(cudaStreamQuery(consumer.stream), cudaErrorNotReady);
  cudaGetLastError();
  late.let_go();
  demand(cudaStreamSynchronize(consumer.stream));
  EXPECT_EQ(std::vector<float>(consumer.pinned, consumer.pinned + kCount), all(2));
  managed->deleter(managed);
}

TEST_F(Native, AnExportWithoutOrderDoesNotWait) {
  Library consumer;
  const Tensor x = full({kCount}, 1, DType::f32, device);
  device.sync();
  Hold late(ours());
  dlpack::Managed* managed = dlpack::export_managed(x, dlpack::Order::none());
  consumer.read(*managed);
  demand(cudaStreamSynchronize(consumer.stream));
  EXPECT_EQ(std::vector<float>(consumer.pinned, consumer.pinned + kCount), all(1));
  late.let_go();
  managed->deleter(managed);
}

TEST_F(Native, MemoryGoesBackOnceNothingUsesIt) {
  Library library;
  Hold late(ours());
  Tensor x = dlpack::import_managed(&library.managed, device, dlpack::Order::none()), sum = x + 1;
  std::thread dropping([held = std::move(x)]() mutable { held = {}; });
  linger();
  EXPECT_EQ(library.released, 0);
  late.let_go();
  dropping.join();
  EXPECT_EQ(library.released, 1);
  EXPECT_EQ(sum.to_vector<float>(), all(1));
}

// --- Each case runs in its own process.

[[noreturn]] void import_on_the_second_device() {
  add_backend(plugrad_cuda_backend(host()));
  const Device there = dlpack::device_of({2, 1});
  set_device_options("cuda-emu:0", {});  // throws if the device is open
  std::fprintf(stderr, "%s alone\n", there.name().c_str());
  std::exit(0);
}

[[noreturn]] void notify_of_a_loss() {
  const plugrad_backend& table = *plugrad_cuda_backend(host());
  const auto& native = *static_cast<const plugrad_native*>(table.get_extension(PLUGRAD_NATIVE));
  plugrad_device* device = nullptr;
  plugrad_device_info info{};
  info.struct_size = sizeof info;
  plugrad_stream* stream = nullptr;
  plugrad_buffer* buffer = nullptr;
  table.open(host(), 0, nullptr, &device, &info);
  table.stream_create(device, PLUGRAD_COMPUTE_STREAM, &stream);
  table.alloc(device, kBytes, &buffer);
  plugrad_signature question{sizeof question, PLUGRAD_OP_FILL, 0, PLUGRAD_IMMEDIATE, 1, 1, {PLUGRAD_F32, PLUGRAD_F32},
                             nullptr};
  const plugrad_kernel* kernel = table.resolve(device, &question);
  plugrad_view out{buffer, 0, kCount, PLUGRAD_F32, 1, 0, {}, {kCount}, {1}};
  plugrad_view number{nullptr, 0, 1, PLUGRAD_F32, 0, PLUGRAD_IMMEDIATE, {}, {}, {}};
  const plugrad_view* views[] = {&out, &number};
  const plugrad_op op{sizeof op, PLUGRAD_OP_FILL, 1, views, nullptr, 1, 1, 0, nullptr, 0, 0};
  std::atomic<int> told{0};
  const auto tell = [](void* context) {
    auto* count = static_cast<std::atomic<int>*>(context);
    ++*count;
  };
  void* handle = nullptr;
  native.handle(stream, &handle);
  {
    Hold late(static_cast<cudaStream_t>(handle));
    simt::inject(simt::Injection::launch_faults, 1);
    kernel->run(kernel, stream, &op);
    native.notify(stream, 1, tell, &told);
    std::fprintf(stderr, "told %d before\n", told.load());
  }
  while (!told) std::this_thread::yield();
  uint64_t done = 0;
  const bool lost = table.completed(stream, &done) == PLUGRAD_DEVICE_LOST;
  native.notify(stream, 1, tell, &told);
  std::fprintf(stderr, "told %d after, lost %d, done %d\n", told.load(), lost, static_cast<int>(done));
  std::_Exit(0);
}

class NativeDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(NativeDeathTest, AnImportOpensTheDeviceOfTheArrayAlone) {
  EXPECT_EXIT(import_on_the_second_device(), testing::ExitedWithCode(0), "cuda-emu:1 alone");
}

TEST_F(NativeDeathTest, ANoticeComesWhereTheDeviceIsLost) {
  EXPECT_EXIT(notify_of_a_loss(), testing::ExitedWithCode(0), "told 0 before\n(.*\n)*.*told 2 after, lost 1, done 1");
}

}  // namespace
}  // namespace plugrad::test
