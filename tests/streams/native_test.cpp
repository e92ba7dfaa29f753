// The order of work with another library's stream on the same device, with late work before an import and after an export.
#include <core/runtime/memory/import.hpp>
#include <core/runtime/streams/native.hpp>
#include <tests/streams/rig.hpp>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace plugrad::test {
namespace {

const plugrad_native& extension() { return *shared_devices().first.native; }

// Another library with its own stream and buffer on a device of the core. The stream has the copy role, so that a timeline
// can hold it while the core's compute stream runs.
class Library {
 public:
  explicit Library(DeviceState& device, uint64_t bytes) : device_(device), bytes_(bytes) {
    check(device.table.stream_create(device.handle, PLUGRAD_COPY_STREAM, &stream_));
    check(device.table.alloc(device.handle, bytes, &buffer_));
    check(extension().handle(stream_, &native_));
  }
  ~Library() {
    plugrad_failure failure{sizeof failure, 0, 0, 0};
    device_.table.sync(stream_, &failure);
    device_.table.free(device_.handle, buffer_);
  }
  Library(const Library&) = delete;

  void* native() const { return native_; }
  MemoryPiece piece() const { return {reinterpret_cast<uintptr_t>(buffer_), 0, bytes_}; }

  // Fills by a copy, because the rig compares the core's count of kernels with sim's.
  void fill(float value) { fill(buffer_, 0, value); }
  void fill(plugrad_buffer* buffer, uint64_t offset, float value) {
    std::vector<float> values(bytes_ / sizeof(float), value);
    auto* const source = reinterpret_cast<plugrad_buffer*>(values.data());
    const plugrad_place to{sizeof to, PLUGRAD_DEVICE, device_.handle, buffer, offset};
    const plugrad_place from{sizeof from, PLUGRAD_HOST, nullptr, source, 0};
    const plugrad_copy copy{sizeof copy, 0, ++number_, bytes_, to, from};
    check(device_.table.copy(stream_, &copy));
  }
  // Acts as a producer that received the consumer's stream.
  void signal(void* consumer) { check(extension().signal(stream_, ++number_, consumer)); }

 private:
  static void check(plugrad_status status) { ASSERT_EQ(status, PLUGRAD_OK); }
  DeviceState& device_;
  uint64_t bytes_, number_ = 0;
  plugrad_stream* stream_ = nullptr;
  plugrad_buffer* buffer_ = nullptr;
  void* native_ = nullptr;
};

using Native = Timeline;
INSTANTIATE_TEST_SUITE_P(Blocks, Native, testing::Values(kSmallBytes, kLargeBytes), size_name);

Ref<Storage> import(DeviceState& device, const Library& from, std::optional<void*> after) {
  return import_memory(device, from.piece(), after);
}

TEST_P(Native, AnImportComesAfterAProducerThatIsLate) {
  Library producer(d, bytes);
  const Ref<Storage> sum = make();
  hold(d, kCopies);
  producer.fill(3);
  const Ref<Storage> x = import(d, producer, producer.native());
  add(*sum, *x, *x);
  hold(d, 0);
  EXPECT_EQ(get(*sum), 6);
}

TEST_P(Native, AnImportWithoutOrderIsAHazard) {
  Library producer(d, bytes);
  const Ref<Storage> sum = make();
  hold(d, kCopies);
  producer.fill(3);
  const Ref<Storage> x = import(d, producer, std::nullopt);
  add(*sum, *x, *x);
  hold(d, 0);
  expect_hazard();
}

TEST_P(Native, AProducerMayMakeOurStreamWait) {
  Library producer(d, bytes);
  const Ref<Storage> sum = make();
  hold(d, kCopies);
  producer.fill(4);
  void* const ours = native::handle(d);
  producer.signal(ours);
  const Ref<Storage> x = import(d, producer, ours);
  add(*sum, *x, *x);
  hold(d, 0);
  EXPECT_EQ(get(*sum), 8);
}

// The wait has a number on the compute stream; other streams and devices wait for that number.
TEST_P(Native, OtherStreamsComeAfterTheProducerToo) {
  Library producer(d, bytes);
  const Ref<Storage> there = make(e);
  hold(d, kCopies);
  producer.fill(5);
  void* const ours = native::handle(d);
  producer.signal(ours);
  const Ref<Storage> x = import(d, producer, ours);
  Pinned out = pin();
  transfer::download(out, *x, 0, bytes);
  transfer::between(*there, 0, *x, 0, bytes);
  hold(d, 0);
  transfer::settle(out);
  EXPECT_EQ(value_of(out), 5);
  EXPECT_EQ(get(*there), 5);
  transfer::unpin(out);
}

TEST_P(Native, AConsumerComesAfterWhatWeWriteAndRead) {
  Library consumer(d, bytes);
  const Ref<Storage> x = make(), there = make(e);
  hold(d, kCompute);
  hold(e, kCopies);
  fill(*x, 1);
  add(*x, *x, *x);
  transfer::between(*there, 0, *x, 0, bytes);
  native::release(*x, consumer.native());
  consumer.fill(x->buffer, x->offset, 9);
  hold(d, 0);
  hold(e, 0);
  EXPECT_EQ(get(*there), 2);
  const Ref<Storage> after = make();
  native::acquire(*x, consumer.native());
  add(*after, *x, *x);
  EXPECT_EQ(get(*after), 18);
}

TEST_P(Native, AConsumerWithoutSignalIsAHazard) {
  Library consumer(d, bytes);
  const Ref<Storage> x = make();
  hold(d, kCompute);
  fill(*x, 1);
  consumer.fill(x->buffer, x->offset, 9);
  hold(d, 0);
  expect_hazard();
  streams::sync(*d.compute);
}

TEST_P(Native, MemoryGoesBackOnceNothingUsesIt) {
  Library producer(d, bytes);
  producer.fill(2);
  std::atomic<int> released{0};
  const auto count = [](void* context) { ++*static_cast<std::atomic<int>*>(context); };
  Ref<Storage> x = import_memory(d, producer.piece(), producer.native());
  own_memory(*x, count, &released);
  const Ref<Storage> sum = make();
  hold(d, kCompute);
  add(*sum, *x, *x);
  std::thread dropping([held = std::move(x)]() mutable { held = {}; });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_EQ(released, 0);
  hold(d, 0);
  dropping.join();
  EXPECT_EQ(released, 1);
  EXPECT_EQ(get(*sum), 4);
}

TEST_P(Native, AnOrderAfterNoStreamIsRefused) {
  Library producer(d, bytes);
  int no_stream = 0;
  const Outcome refused = outcome([&] { import_memory(d, producer.piece(), &no_stream); });
  EXPECT_FALSE(refused.ok);
  EXPECT_NE(refused.what.find("the native stream is not a stream of this plugin"), std::string::npos) << refused.what;
}

TEST_P(Native, ADeviceWithoutTheExtensionSaysSo) {
  static DeviceState& bare = [&]() -> DeviceState& {
    static plugrad_backend table = *shared_devices().first.source;
    table.name = "sim-bare";
    table.get_extension = nullptr;
    add_backend(&table);
    return Device("sim-bare:0").state();
  }();
  Library producer(d, bytes);
  const Outcome refused = outcome([&] { import(bare, producer, producer.native()); });
  EXPECT_EQ(refused.code, Code::unsupported);
  EXPECT_NE(refused.what.find("sim-bare:0 cannot wait for another library's stream"), std::string::npos) << refused.what;
  const Ref<Storage> x = test::make(bare, bytes);
  sim().hold(bare.handle, 0);
  fill(*x, 7);
  native::release(*x, producer.native());  // the host waits
  EXPECT_EQ(bare.compute->done, bare.compute->next);
}

// Counts notifications.
struct Notices {
  std::atomic<int> count{0};
  static void note(void* context) { ++static_cast<Notices*>(context)->count; }
};

TEST_P(Native, ANoticeComesOnceAndNotBefore) {
  const Ref<Storage> a = make();
  Notices notices;
  hold(d, kCompute);
  fill(*a, 1);
  const uint64_t number = d.compute->next;
  ASSERT_EQ(extension().notify(d.compute->handle, number, Notices::note, &notices), PLUGRAD_OK);
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_EQ(notices.count, 0);
  hold(d, 0);
  while (!notices.count) std::this_thread::yield();
  EXPECT_GE(streams::poll(*d.compute), number);
  ASSERT_EQ(extension().notify(d.compute->handle, number, Notices::note, &notices), PLUGRAD_OK);
  ASSERT_EQ(extension().notify(d.compute->handle, 0, Notices::note, &notices), PLUGRAD_OK);
  EXPECT_EQ(notices.count, 3);
  EXPECT_EQ(extension().notify(d.compute->handle, d.compute->next + 1, Notices::note, &notices), PLUGRAD_INVALID);
  EXPECT_EQ(get(*a), 1);
  EXPECT_EQ(notices.count, 3);
}

TEST_P(Native, ANoticeComesWhereTheDeviceIsLost) {
  static const Pair pair = fresh_devices();
  if (pair.first.lost) GTEST_SKIP() << "the device of this timeline was lost in the run with small blocks";
  const Ref<Storage> a = test::make(pair.first, bytes);
  Notices notices;
  sim().hold(pair.first.handle, kCompute);
  sim().arm(pair.first.handle, PLUGRAD_SIM_LOSE, 1);
  fill(*a, 1);
  fill(*a, 2);
  ASSERT_EQ(extension().notify(pair.first.compute->handle, pair.first.compute->next, Notices::note, &notices), PLUGRAD_OK);
  sim().hold(pair.first.handle, 0);
  while (!notices.count) std::this_thread::yield();
  EXPECT_FALSE(outcome([&] { get(*a); }).ok);
  EXPECT_TRUE(pair.first.lost);
}

}  // namespace
}  // namespace plugrad::test
