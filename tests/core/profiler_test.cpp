// The events that a profiler records on any device, its table and its trace.
#include <tests/core/expect.hpp>

#include <plugrad/autograd/memory.hpp>
#include <plugrad/runtime/profiler.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

namespace plugrad::test {
namespace {

using Json = nlohmann::json;
using Events = std::vector<ProfileEvent>;

bool is_asynchronous() { return default_device().capabilities() & PLUGRAD_ASYNC; }
int64_t end_of(const ProfileEvent& event) { return event.begin + event.duration; }

template <class Wanted> Events only(const Events& events, const Wanted& wanted) {
  Events found;
  std::ranges::copy_if(events, std::back_inserter(found), wanted);
  return found;
}
Events named(const Events& events, const std::string& name) {
  return only(events, [&](const ProfileEvent& each) { return each.name == name; });
}
Events of_kind(const Events& events, EventKind kind) {
  return only(events, [&](const ProfileEvent& each) { return each.kind == kind; });
}

struct Network {
  nn::Linear first{6, 8}, second{8, 3};
  Tensor loss(const Tensor& x) const { return mean(square(second(relu(first(x))))); }
  std::vector<Tensor> parameters() const { return {first.weight, first.bias, second.weight, second.bias}; }
  void step(const Tensor& x) {
    loss(x).backward();
    Tensor no_velocity;
    for (Tensor each : parameters()) {
      sgd_step(each, no_velocity, each.grad(), {.rate = 0.1});
      each.clear_grad();
    }
  }
};

// The path of a file that is removed at the end.
class Scratch {
 public:
  ~Scratch() { std::filesystem::remove(path()); }
  std::string path() const { return path_; }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() /
                      ("profiler-" + default_device().name() + "-" +
                       std::to_string(std::hash<std::thread::id>()(std::this_thread::get_id())) + ".json");
};

// Expects that every event is inside the enclosing event, and that its own time, without inner events, is at most its
// duration.
void expect_nested(const Events& events) {
  std::vector<ProfileEvent> around;
  for (size_t i = 0; i < events.size(); ++i) {
    const ProfileEvent& each = events[i];
    if (!i || events[i - 1].thread != each.thread) {
      around.clear();
    } else {
      EXPECT_LE(events[i - 1].begin, each.begin) << each.name;
    }
    while (!around.empty() && around.back().depth >= each.depth) around.pop_back();
    ASSERT_EQ(around.size(), each.depth) << each.name;
    if (!around.empty()) {
      EXPECT_GE(each.begin, around.back().begin) << each.name;
      EXPECT_LE(end_of(each), end_of(around.back())) << each.name;
    }
    EXPECT_GE(each.self, 0) << each.name;
    EXPECT_LE(each.self, each.duration) << each.name;
    around.push_back(each);
  }
}

TEST(Profiler, ATrainingStepHasNestedEventsForwardAndBackward) {
  Network network;
  const Tensor x = rand({4, 6});
  Profiler profile;
  network.step(x);
  profile.stop();
  const Events all = profile.events();
  expect_nested(all);
  const Events ops = of_kind(all, EventKind::op), backward = named(ops, "matmul");
  EXPECT_EQ(only(named(ops, "matmul_add"), [](const ProfileEvent& e) { return e.gradient.empty(); }).size(), 2u);
  EXPECT_EQ(backward.size(), 3u);
  for (const ProfileEvent& each : backward) EXPECT_FALSE(each.gradient == "backward") << "an op of a node";
  EXPECT_FALSE(of_kind(all, EventKind::gradient).empty());
  EXPECT_EQ(named(of_kind(all, EventKind::range), "Linear").size(), 2u);
}

TEST(Profiler, EventsEqualTheDevicesCounters) {
  Network network;
  const Tensor x = rand({4, 6});
  const DeviceCounters before = default_device().counters();
  Profiler profile;
  network.step(x);
  elements(transpose(x) + sort(transpose(x), 0).values);
  const Tensor half = cast(x, DType::f16);
  elements(log_softmax(half * half, 1));
  profile.stop();
  const DeviceCounters after = default_device().counters();
  std::map<How, uint64_t> ops;
  const Events all = profile.events();
  for (const ProfileEvent& each : of_kind(all, EventKind::op)) ++ops[each.how];
  EXPECT_EQ(ops[How::native] + ops[How::dense_copies], after.kernels - before.kernels);
  EXPECT_EQ(ops[How::wider], after.widened - before.widened);
  EXPECT_EQ(ops[How::decomposed], after.decompositions - before.decompositions);
  EXPECT_EQ(ops[How::host], 0u);
  EXPECT_EQ(named(all, "upload").size(), after.uploads - before.uploads);
  EXPECT_EQ(named(all, "download").size(), after.downloads - before.downloads);
}

TEST(Profiler, OperandsHaveShapesDTypesAndBytes) {
  const Tensor a = of(DType::f32, spread(6, -1, 1), {2, 3}), b = of(DType::f32, spread(12, -1, 1), {3, 4});
  Profiler profile;
  matmul(a, b);
  a * 2;
  add(a, slice(a, 0, 0, 1));
  profile.stop();
  const Events products = named(profile.events(), "matmul"), numbers = named(profile.events(), "mul");
  ASSERT_EQ(products.size(), 1u);
  ASSERT_EQ(products[0].operands.size(), 3u);
  EXPECT_EQ(products[0].bytes, (8u + 6u + 12u) * 4u);
  EXPECT_TRUE(products[0].operands[0].output);
  EXPECT_TRUE(std::ranges::equal(products[0].operands[0].shape(), Shape{2, 4}));
  EXPECT_TRUE(std::ranges::equal(products[0].operands[2].shape(), Shape{3, 4}));
  EXPECT_STREQ(products[0].operands[1].dtype, "f32");
  EXPECT_EQ(products[0].device, default_device());
  EXPECT_TRUE(products[0].complete);
  ASSERT_EQ(numbers.size(), 1u);
  EXPECT_TRUE(numbers[0].operands[2].number);
  EXPECT_EQ(numbers[0].bytes, 2 * 6u * 4u);
  EXPECT_EQ(named(profile.events(), "add")[0].bytes, (6u + 6u + 3u) * 4u) << "a broadcast row is read once";
}

TEST(Profiler, WithoutSynchronisingTheTimeIsThatOfTheCall) {
  const Tensor a = of(DType::f32, {1, 2}, {2});
  Profiler profile({.synchronize = false});
  exp(a);
  profile.stop();
  EXPECT_EQ(named(profile.events(), "exp")[0].complete, !is_asynchronous());
  EXPECT_EQ(profile.table().find("host, without the device") != std::string::npos, is_asynchronous()) << profile.table();
}

TEST(Profiler, ANestedOpHasItsOwnTime) {
  const Tensor a = of(DType::f32, {1, 2}, {2});
  Profiler profile;
  {
    const ProfileRange outer("outer");
    const ProfileRange inner("inner");
    exp(a);
  }
  profile.stop();
  const Events all = profile.events();
  ASSERT_GE(all.size(), 3u);
  EXPECT_EQ(all[0].name, "outer");
  EXPECT_EQ(all[1].name, "inner");
  EXPECT_EQ(all[0].self, all[0].duration - all[1].duration);
}

// The peak of a range includes the memory that its ops allocate, but no memory that was released before the range.
TEST(Profiler, ARangeHasThePeakOfItsOps) {
  const Tensor a = zeros({1 << 16});
  const uint64_t before = default_device().memory().active;
  (void)zeros({1 << 22});
  Profiler profile;
  {
    const ProfileRange range("both");
    exp(exp(a));
  }
  profile.stop();
  const uint64_t peak = named(profile.events(), "both")[0].peak;
  EXPECT_GE(peak, before + 2 * sizeof(float) * (1u << 16));
  EXPECT_LT(peak, before + sizeof(float) * (1u << 22));
}

TEST(Profiler, OnlyWhatRunsWhileItLivesIsRecorded) {
  const Tensor a = of(DType::f32, {1, 2}, {2});
  exp(a);
  Profiler profile;
  exp(a);
  profile.stop();
  exp(a);
  const ProfileRange nothing("nothing");
  profile.stop();
  EXPECT_EQ(named(profile.events(), "exp").size(), 1u);
  EXPECT_TRUE(named(profile.events(), "nothing").empty());
}

TEST(Profiler, BadOptionsAreErrorsAtOnce) {
  EXPECT_TRUE(throws(Code::invalid, {"[profiler]", "limit", "0"}, [] { Profiler({.limit = 0}); }));
  const std::string path = "/no such folder/trace.json";
  EXPECT_TRUE(throws(Code::io_error, {"[profiler]", path, "folder"}, [&] { Profiler({.trace = path}); }));
  const Profiler profile;
  EXPECT_TRUE(throws(Code::invalid, {"[profiler]", "another profiler"}, [] { Profiler(); }));
  EXPECT_TRUE(throws(Code::io_error, {"[profiler]", path}, [&] { profile.save(path); }));
}

TEST(Profiler, TheLimitDropsAndCountsEvents) {
  const Tensor a = of(DType::f32, {1, 2}, {2});
  Profiler profile({.limit = 10});
  for (int i = 0; i < 25; ++i) exp(a);
  profile.stop();
  EXPECT_EQ(profile.events().size(), 10u);
  EXPECT_GE(profile.dropped(), 15u);
  EXPECT_NE(profile.table().find(std::to_string(profile.dropped()) + " events were dropped"), std::string::npos);
}

TEST(Profiler, AnExceptionEndsTheEventsAroundIt) {
  Profiler profile;
  EXPECT_THROW(
      {
        const ProfileRange outer("outer");
        const ProfileRange inner("inner");
        throw std::runtime_error("stop");
      },
      std::runtime_error);
  {
    const ProfileRange after("after");
  }
  profile.stop();
  const Events all = profile.events();
  expect_nested(all);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].failed && all[1].failed);
  EXPECT_FALSE(all[2].failed);
  EXPECT_EQ(all[2].depth, 0u);
}

TEST(Profiler, EveryThreadHasItsEvents) {
  constexpr uint32_t kThreads = 4, kOps = 200;
  const Tensor a = of(DType::f32, {1, 2}, {2});
  Profiler profile;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (uint32_t op = 0; op < kOps; ++op) exp(a);
    });
  while (profile.events().size() < kOps) std::this_thread::yield();  // reads while other threads record
  for (std::thread& each : threads) each.join();
  profile.stop();
  const Events all = profile.events();
  expect_nested(all);
  std::map<uint32_t, uint32_t> counts;
  for (const ProfileEvent& each : named(all, "exp")) ++counts[each.thread];
  ASSERT_EQ(counts.size(), kThreads);
  for (const auto& [thread, count] : counts) EXPECT_EQ(count, kOps) << thread;
}

// Threads run ops while profilers are created and destroyed.
TEST(Profiler, ProfilersMayComeAndGoWhileOpsRun) {
  std::atomic<bool> over{false};
  const Tensor a = of(DType::f32, {1, 2}, {2});
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      const Tensor x = clone(a).requires_grad_();
      while (!over) sum(exp(x) * x).backward();
    });
  for (int i = 0; i < 30; ++i) {
    const Profiler profile({.limit = 500, .memory = i % 2 == 0});
    while (profile.events().size() < 50) std::this_thread::yield();
    expect_nested(only(profile.events(), [](const ProfileEvent& e) { return e.depth == 0; }));
  }
  over = true;
  for (std::thread& each : threads) each.join();
  EXPECT_TRUE(close(exp(a * 0), {2}, {1, 1}));
}

// --- Tables.

TEST(Profiler, RowsSumUpAndAreSorted) {
  const Tensor small = of(DType::f32, {1, 2}, {2}), large = zeros({100, 100});
  Profiler profile;
  for (int i = 0; i < 5; ++i) exp(small);
  for (int i = 0; i < 2; ++i) tanh(large);
  profile.stop();
  const auto first = [&](ProfileSort sort) { return profile.rows({.sort = sort})[0].name; };
  EXPECT_EQ(first(ProfileSort::calls), "exp");
  EXPECT_EQ(first(ProfileSort::bytes), is_asynchronous() ? first(ProfileSort::bytes) : "tanh");
  EXPECT_EQ(profile.rows({.rows = 1}).size(), 1u);
  const std::vector<ProfileRow> rows = profile.rows({.sort = ProfileSort::time, .rows = 100});
  EXPECT_TRUE(std::ranges::is_sorted(rows, std::greater(), &ProfileRow::self));
  const auto row = std::ranges::find(rows, "exp", &ProfileRow::name);
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->calls, 5u);
  EXPECT_EQ(row->bytes, 5 * 2 * 2 * sizeof(float));
  EXPECT_EQ(row->device, default_device().name());
  const std::vector<ProfileRow> shaped = profile.rows({.rows = 100, .shapes = true});
  EXPECT_EQ(std::ranges::find(shaped, "tanh", &ProfileRow::name)->shapes, "(100, 100) f32 <- (100, 100) f32");
}

TEST(Profiler, TheTableIsAligned) {
  const Tensor x = of(DType::f32, {1, 2}, {2});
  Profiler profile;
  {
    const ProfileRange range("step");
    exp(x);
  }
  profile.stop();
  std::istringstream lines(profile.table());
  std::string header, dashes, line;
  std::getline(lines, header);
  std::getline(lines, dashes);
  for (const char* each : {"name", "device", "how", "calls", "self", "share", "total", "mean", "bytes", "rate", "fallbacks"})
    EXPECT_NE(header.find(each), std::string::npos) << each;
  EXPECT_EQ(dashes.find_first_not_of("- "), std::string::npos);
  std::getline(lines, line);
  EXPECT_EQ(line.find("native"), header.find("how")) << profile.table();
  EXPECT_EQ(line.size(), header.size()) << profile.table();
  EXPECT_NE(profile.table().find("step"), std::string::npos);
}

// --- Traces.

// Parses JSON and fails the test if an object has a key twice.
Json parsed(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  return Json::parse(text, [&](int, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    EXPECT_TRUE(event != Json::parse_event_t::key || keys.back().insert(value.get<std::string>()).second) << value;
    return true;
  });
}

// Expects the fields that the format requires, and that the complete events of each thread nest.
void expect_valid(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> spans;
  for (const Json& each : trace.at("traceEvents")) {
    const std::string phase = each.at("ph");
    EXPECT_TRUE(each.at("name").is_string() && each.at("pid").is_number_unsigned() && each.at("tid").is_number_unsigned());
    EXPECT_TRUE(phase == "M" ? each.at("args").at("name").is_string() : each.at("ts").get<double>() >= 0) << each;
    EXPECT_TRUE(phase == "X" || phase == "M" || phase == "C" || phase == "i") << phase;
    if (phase == "X") spans[{each.at("pid"), each.at("tid")}].emplace_back(each.at("ts"), each.at("dur"));
  }
  EXPECT_FALSE(spans.empty());
  for (auto& [place, all] : spans) {
    std::ranges::sort(all, [](const auto& a, const auto& b) { return a.first != b.first ? a < b : a.second > b.second; });
    std::vector<double> ends;
    for (const auto& [begin, duration] : all) {
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      EXPECT_TRUE(ends.empty() || begin + duration <= ends.back() + 0.001) << "overlaps without being inside";
      ends.push_back(begin + duration);
    }
  }
}

TEST(Profiler, TheTraceIsWhatTheFormatSays) {
  const Scratch file;
  Network network;
  const Tensor x = rand({4, 6});
  {
    Profiler profile({.trace = file.path()});
    for (int step = 0; step < 2; ++step) {
      const ProfileRange range("step \"\\\n\xff\xc3\xa9 " + std::to_string(step));
      network.step(x);
    }
    std::thread([&] { exp(x); }).join();
  }
  const Json trace = parsed(file.text());
  expect_valid(trace);
  std::set<std::string> processes;
  bool forward = false, backward = false, range = false, counter = false, gradient = false;
  for (const Json& each : trace.at("traceEvents")) {
    const std::string name = each.at("name");
    if (name == "process_name") processes.insert(each.at("args").at("name"));
    if (name == "step \"\\\n?\u00e9 1") range = true;
    if (each.at("ph") == "C") counter = each.at("args").at("bytes").get<uint64_t>() > 0;
    gradient |= name == "gradient of linear";
    if (!name.starts_with("matmul")) continue;
    (each.at("cat") == "forward" ? forward : backward) = true;
    EXPECT_EQ(each.at("args").at("inputs").size(), name == "matmul_add" ? 3u : 2u);
    EXPECT_EQ(each.at("args").at("outputs")[0].at("dtype"), "f32");
    EXPECT_EQ(each.at("args").at("how"), "native");
  }
  EXPECT_EQ(processes, (std::set<std::string>{"host", default_device().name()}));
  EXPECT_TRUE(forward && backward && range && counter && gradient);
}

}  // namespace
}  // namespace plugrad::test
