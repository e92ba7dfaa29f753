// What libraries use that keep tensors of their own: memory, ops into given tensors, copies, events, generators; and the
// headers of SDK and core together, as a host with its own backend uses them.
#include <plugrad/sdk/functions.hpp>
#include <plugrad/sdk/rows.hpp>
#include <tests/core/expect.hpp>

#include <memory>
#include <numeric>
#include <thread>
#include <type_traits>

namespace plugrad::test {
namespace {

std::vector<float> counted(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}
Tensor f32(const std::vector<float>& values, const Shape& shape) { return Tensor::from(values, shape); }

// --- Memory.

TEST(MemoryHandles, TensorsLieOverThem) {
  const Memory memory(default_device(), 96);
  EXPECT_EQ(memory.bytes(), 96u);
  EXPECT_EQ(memory.device(), default_device());
  EXPECT_FALSE(memory.is_shared());
  const Tensor all = tensor_over(memory, DType::f32, 0, {24}, {1});
  EXPECT_TRUE(memory.is_shared());
  copy_from_host(all, counted(24).data());
  EXPECT_EQ(elements(tensor_over(memory, DType::f32, 8, {2, 3}, {10, 2})), (std::vector<double>{2, 4, 6, 12, 14, 16}));
  EXPECT_EQ(elements(tensor_over(memory, DType::f32, 20, {3}, {-2})), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(elements(tensor_over(memory, DType::f32, 4, {2, 2}, {0, 1})), (std::vector<double>{1, 2, 1, 2}));
  Tensor row = tensor_over(memory, DType::f32, 16, {4}, {1});
  row.fill_(-1);
  EXPECT_EQ(elements(slice(all, 0, 3, 9)), (std::vector<double>{3, -1, -1, -1, -1, 8}));
}

TEST(MemoryHandles, OutliveTensorsAndTellWhereTheyLie) {
  Memory memory;
  EXPECT_FALSE(memory.defined());
  {
    const Tensor x = f32(counted(12), {3, 4}), part = slice(x, 0, 1, 3);
    EXPECT_TRUE(memory_of(x) == memory_of(part));
    EXPECT_EQ(byte_offset_of(x), 0u);
    EXPECT_EQ(byte_offset_of(part), 16u);
    memory = memory_of(part);
    EXPECT_TRUE(memory.is_shared());
  }
  EXPECT_FALSE(memory.is_shared());
  EXPECT_EQ(elements(tensor_over(memory, DType::f32, 32, {4}, {1})), (std::vector<double>{8, 9, 10, 11}));
}

TEST(MemoryHandles, TellWhetherAResultIsShared) {
  const Tensor x = f32(counted(4), {4}), sum = x + 1, same = reshape(x, {2, 2});
  EXPECT_FALSE(shares_memory(sum));
  EXPECT_TRUE(shares_memory(same));
  const Tensor handle = sum;
  EXPECT_FALSE(shares_memory(sum));
  const Memory memory = memory_of(sum);
  EXPECT_TRUE(shares_memory(sum));
}

TEST(MemoryHandles, ServeSeveralDtypes) {
  const Memory memory = memory_of(i64({1, 2, 3}));
  const Tensor bytes = tensor_over(memory, DType::u8, 8, {8}, {1});
  EXPECT_EQ(elements(bytes), (std::vector<double>{2, 0, 0, 0, 0, 0, 0, 0}));
  tensor_over(memory, DType::u8, 9, {1}, {1}).fill_(1);
  EXPECT_EQ(elements(tensor_over(memory, DType::i64, 0, {3}, {1})), (std::vector<double>{1, 258, 3}));
  EXPECT_EQ(elements(tensor_over(memory, DType::i64, 24, {0}, {1})), std::vector<double>());
}

TEST(MemoryHandles, RefuseElementsOutside) {
  const Memory memory(default_device(), 40);
  const auto over = [&](uint64_t offset, const Shape& shape, const Shape& strides, DType dtype = DType::f32) {
    return [=] { tensor_over(memory, dtype, offset, shape, strides); };
  };
  EXPECT_TRUE(
      throws(Code::invalid, {"[tensor_over]", "(11,)", "from byte 0", "leaves the memory of 40 bytes"}, over(0, {11}, {1})));
  EXPECT_TRUE(throws(Code::invalid, {"leaves the memory"}, over(36, {2}, {1})));
  EXPECT_TRUE(throws(Code::invalid, {"leaves the memory"}, over(4, {3}, {-1})));
  EXPECT_TRUE(throws(Code::invalid, {"leaves the memory"}, over(uint64_t{1} << 63, {1}, {1})));
  EXPECT_TRUE(throws(Code::invalid, {"not a multiple of the 4 bytes"}, over(2, {1}, {1})));
  EXPECT_TRUE(throws(Code::invalid, {"differ in rank"}, over(0, {2, 2}, {1})));
  EXPECT_TRUE(throws(Code::invalid, {"reach further than any memory"}, over(0, {3}, {INT64_MAX})));
  EXPECT_TRUE(throws(Code::invalid, {"more than 2^63 - 1 elements"}, over(0, {INT64_MAX, 3}, {0, 0})));
  EXPECT_TRUE(throws(Code::invalid, {"the memory is undefined"}, [] { tensor_over({}, DType::f32, 0, {1}, {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"the memory is undefined"}, [] { (void)Memory().bytes(); }));
  EXPECT_TRUE(throws(Code::invalid, {"more bytes than can be addressed"}, [] { Memory(default_device(), UINT64_MAX); }));
  EXPECT_TRUE(throws(Code::invalid, {"DType 99"}, over(0, {1}, {1}, static_cast<DType>(99))));
}

// Operands of ten axes: from a permuted one to a dense one.
TEST(MemoryHandles, ServeRanksAboveEight) {
  const std::vector<int64_t> sizes{2, 3, 2, 1, 2, 2, 3, 2, 2, 2};
  std::vector<int64_t> dense(10), turned(10);
  int64_t count = 1;
  for (size_t d = 10; d-- > 0; count *= sizes[d]) dense[d] = count;
  int64_t step = 1;
  for (size_t d = 0; d < 10; step *= sizes[d++]) turned[d] = step;
  const Tensor x = f32(counted(count), {count}), y = zeros({count});
  const std::vector<StridedOperand> operands{{memory_of(y), DType::f32, 0, dense}, {memory_of(x), DType::f32, 0, turned}};
  const auto calls = tensors_over(sizes, operands);
  for (const auto& each : calls) Tensor(each[0]).copy_(each[1]);
  std::vector<double> expected;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < 10; ++d) at += i / dense[d] % sizes[d] * turned[d];
    expected.push_back(static_cast<double>(at));
  }
  EXPECT_EQ(elements(y), expected);

  const std::vector<StridedOperand> alike{{memory_of(y), DType::f32, 0, dense}, {memory_of(x), DType::f32, 0, dense}};
  const auto merged = tensors_over(sizes, alike);
  ASSERT_EQ(merged.size(), 1u);
  const std::vector<int64_t> empty_sizes{int64_t{1} << 40, int64_t{1} << 40, 0};
  EXPECT_TRUE(tensors_over(empty_sizes, std::vector<StridedOperand>{{memory_of(x), DType::f32, 0, {0, 0, 1}}}).empty());
  EXPECT_EQ(merged[0][0].shape(), Shape({count}));
  EXPECT_TRUE(
      tensors_over(std::vector<int64_t>{2, 0}, std::vector<StridedOperand>{{memory_of(x), DType::f32, 0, {1, 1}}}).empty());
  EXPECT_TRUE(throws(Code::invalid, {"2 strides for 1 sizes"}, [&] {
    tensors_over(std::vector<int64_t>{2}, std::vector<StridedOperand>{{memory_of(x), DType::f32, 0, {1, 1}}});
  }));
  EXPECT_TRUE(throws(Code::invalid, {"leaves the memory"}, [&] {
    tensors_over(std::vector<int64_t>{count + 1}, std::vector<StridedOperand>{{memory_of(x), DType::f32, 0, {1}}});
  }));
}

// --- Ops into given tensors.

TEST(RunInto, WritesWhereItIsTold) {
  const Tensor a = f32({1, 2, 3, 4}, {2, 2}), b = f32({10, 20}, {2}), out = zeros({2, 2});
  const Memory before = memory_of(out);
  EXPECT_TRUE(run_into(PLUGRAD_OP_ADD, out, {a, b}));
  EXPECT_EQ(elements(out), (std::vector<double>{11, 22, 13, 24}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_SUB, out, {100, out}));
  EXPECT_EQ(elements(out), (std::vector<double>{89, 78, 87, 76}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_MATMUL, out, {a, transpose(a)}));
  EXPECT_EQ(elements(out), (std::vector<double>{5, 11, 11, 25}));
  EXPECT_TRUE(memory_of(out) == before);
  const Tensor is_less = zeros({2, 2}, DType::boolean), row = zeros({1, 2}), whole = zeros({2, 2}, DType::i64);
  EXPECT_TRUE(run_into(PLUGRAD_OP_LT, is_less, {a, 2.5}));
  EXPECT_EQ(elements(is_less), (std::vector<double>{1, 1, 0, 0}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_SUM, row, {a}));
  EXPECT_EQ(elements(row), (std::vector<double>{4, 6}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_CAST, whole, {a}));
  EXPECT_EQ(elements(whole), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_WHERE, out, {is_less, a, 7}));
  EXPECT_EQ(elements(out), (std::vector<double>{1, 2, 7, 7}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_FILL, out, {3}));
  EXPECT_EQ(elements(out), (std::vector<double>{3, 3, 3, 3}));
}

TEST(RunInto, CopiesNumbersAndEqualDtypes) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::boolean}) {
    const Tensor out = zeros({3}, dtype), x = ones({3}, dtype);
    for (const uint32_t opcode : {PLUGRAD_OP_COPY, PLUGRAD_OP_CAST}) {
      EXPECT_TRUE(run_into(opcode, out, {1}));
      EXPECT_EQ(elements(cast(out, DType::f32)), (std::vector<double>{1, 1, 1})) << dtype;
      EXPECT_TRUE(run_into(PLUGRAD_OP_FILL, out, {0}) && run_into(opcode, out, {x}));
      EXPECT_EQ(elements(cast(out, DType::f32)), (std::vector<double>{1, 1, 1})) << dtype;
    }
  }
}

TEST(RunInto, ViewsAndOverlaps) {
  const Tensor x = f32(counted(9), {9});
  const Tensor odd = tensor_over(memory_of(x), DType::f32, 4, {4}, {2});
  EXPECT_TRUE(run_into(PLUGRAD_OP_MUL, odd, {odd, -1}));
  EXPECT_EQ(elements(x), (std::vector<double>{0, -1, 2, -3, 4, -5, 6, -7, 8}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_ADD, slice(x, 0, 1, 9), {slice(x, 0, 0, 8), 0}));
  EXPECT_EQ(elements(x), (std::vector<double>{0, 0, -1, 2, -3, 4, -5, 6, -7}));
  const Tensor m = f32({1, 2, 3, 4}, {2, 2});
  EXPECT_TRUE(run_into(PLUGRAD_OP_MATMUL, m, {m, m}));
  EXPECT_EQ(elements(m), (std::vector<double>{7, 10, 15, 22}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_COPY, m, {transpose(m)}));
  EXPECT_EQ(elements(m), (std::vector<double>{7, 15, 10, 22}));
  const Tensor none = zeros({2, 0}), sums = ones({2, 1});
  EXPECT_TRUE(run_into(PLUGRAD_OP_SUM, sums, {none}));
  EXPECT_EQ(elements(sums), (std::vector<double>{0, 0}));
  EXPECT_TRUE(run_into(PLUGRAD_OP_MATMUL, m, {none, zeros({0, 2})}));
  EXPECT_EQ(elements(m), (std::vector<double>{0, 0, 0, 0}));
}

TEST(RunInto, AWriteIsSeenByGradients) {
  const Tensor x = f32({1, 2}, {2});
  Tensor w = f32({3, 4}, {2});
  w.requires_grad_();
  const Tensor product = mul(x, w);
  EXPECT_TRUE(run_into(PLUGRAD_OP_NEG, x, {x}));
  EXPECT_TRUE(throws(Code::invalid, {"changed in place"}, [&] { sum(product).backward(); }))
      << thrown([&] { sum(product).backward(); }).message;
  EXPECT_TRUE(throws(Code::invalid, {"a leaf that requires a gradient"}, [&] { run_into(PLUGRAD_OP_NEG, w, {w}); }));
}

TEST(RunInto, RefusesWhatDoesNotFit) {
  const Tensor a = ones({2, 3}), out = zeros({2, 3});
  const auto refused = [&](uint32_t opcode, const Tensor& to, std::initializer_list<OpInput> in, const char* why) {
    EXPECT_TRUE(throws(Code::invalid, {why}, [&] { run_into(opcode, to, in); }))
        << thrown([&] { run_into(opcode, to, in); }).message;
  };
  refused(PLUGRAD_OP_GATHER, out, {a, a}, "GATHER");
  refused(9999, out, {a}, "unknown");
  refused(PLUGRAD_OP_ADD, out, {a}, "takes 2 inputs, but 1");
  refused(PLUGRAD_OP_ADD, out, {a, ones({4})}, "does not fit");
  refused(PLUGRAD_OP_ADD, zeros({3}), {a, a}, "does not fit");
  refused(PLUGRAD_OP_ADD, out, {a, ones({3}, DType::f64)}, "expected f32");
  refused(PLUGRAD_OP_ADD, zeros({2, 3}, DType::f64), {a, a}, "expected f32");
  refused(PLUGRAD_OP_ADD, out, {1, Tensor()}, "undefined");
  refused(PLUGRAD_OP_EXP, zeros({2}, DType::i64), {ones({2}, DType::i64)}, "exp");
  refused(PLUGRAD_OP_EQ, zeros({2}, DType::boolean), {1, 2}, "numbers alone");
  refused(PLUGRAD_OP_MATMUL, out, {a, a}, "does not fit");
  refused(PLUGRAD_OP_MATMUL, zeros({2, 2}), {a, ones({2, 2})}, "does not fit");
  refused(PLUGRAD_OP_SUM, zeros({3, 1}), {a}, "does not fit");
  refused(PLUGRAD_OP_MATMUL, out, {a, 3}, "takes no number");
  refused(PLUGRAD_OP_MAX, zeros({2, 1}), {zeros({2, 0})}, "of no elements");
  refused(PLUGRAD_OP_FILL, out, {a}, "FILL takes a number");
  refused(PLUGRAD_OP_ADD, expand(zeros({1}), {2}), {1, ones({2})}, "share memory");
}

// --- Copies.

TEST(HostCopies, FillTensorsOfAnyStrides) {
  const Tensor x = zeros({3, 4});
  copy_from_host(x, counted(12).data());
  copy_from_host(transpose(slice(x, 0, 0, 2)), std::vector<float>{10, 20, 11, 21, 12, 22, 13, 23}.data());
  EXPECT_EQ(elements(x), (std::vector<double>{10, 11, 12, 13, 20, 21, 22, 23, 8, 9, 10, 11}));
  const Tensor truths = zeros({3}, DType::boolean);
  copy_from_host(truths, std::vector<uint8_t>{0, 255, 1}.data());
  EXPECT_EQ(elements(cast(truths, DType::f32)), (std::vector<double>{0, 1, 1}));
  copy_from_host(zeros({0}), nullptr);
  Tensor leaf = zeros({2});
  leaf.requires_grad_();
  EXPECT_TRUE(throws(Code::invalid, {"a leaf that requires a gradient"}, [&] { copy_from_host(leaf, counted(2).data()); }));
}

TEST(HostCopies, PinnedMemory) {
  PinnedMemory pinned(default_device(), 64);
  EXPECT_EQ(pinned.bytes(), 64u);
  EXPECT_EQ(pinned.device(), default_device());
  auto* const host = static_cast<float*>(pinned.data());
  std::ranges::copy(counted(16), host);
  const Tensor x = zeros({4}), y = zeros({2, 2});
  copy_from_host(x, pinned, 16);
  copy_from_host(transpose(y), pinned);
  pinned.wait();
  std::fill_n(host, 16, -1.0f);
  EXPECT_EQ(elements(x), (std::vector<double>{4, 5, 6, 7}));
  EXPECT_EQ(elements(y), (std::vector<double>{0, 2, 1, 3}));
  copy_to_host(add(x, 1), pinned, 8);
  copy_to_host(transpose(y), pinned, 32);
  pinned.wait();
  EXPECT_EQ(std::vector<float>(host, host + 13), (std::vector<float>{-1, -1, 5, 6, 7, 8, -1, -1, 0, 1, 2, 3, -1}));
  PinnedMemory moved(std::move(pinned));
  EXPECT_EQ(moved.data(), host);
  EXPECT_TRUE(throws(Code::invalid, {"moved from"}, [&] { (void)pinned.bytes(); }));
  EXPECT_TRUE(throws(Code::invalid, {"moved from"}, [&] { copy_to_host(x, pinned); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[copy_to_host] 16 bytes from byte 52", "64 bytes"}, [&] { copy_to_host(x, moved, 52); }));
  EXPECT_TRUE(throws(Code::invalid, {"[copy_from_host]"}, [&] { copy_from_host(x, moved, uint64_t{1} << 63); }));
}

// A failure is told once, and the bytes are free after it.
TEST(HostCopies, PinnedMemoryAfterAFailure) {
  PinnedMemory pinned(default_device(), 1 << 16);
  auto* const host = static_cast<float*>(pinned.data());
  const auto fail = [&] {
    copy_to_host(index_select(ones({4}), 0, i64({9})), pinned);
    pinned.wait();
  };
  EXPECT_TRUE(throws(Code::index_error, {}, fail));
  (void)thrown([] { default_device().sync(); });
  std::fill_n(host, 1 << 14, 3.0f);
  const Tensor to = matmul(ones({128, 300}), ones({300, 128}));
  copy_from_host(to, pinned);
  pinned.wait();
  std::fill_n(host, 1 << 14, -9.0f);
  EXPECT_EQ(elements(sum(to)), (std::vector<double>{3.0 * (1 << 14)}));
}

// --- Events and generators.

TEST(Events, TellWhenWorkIsDone) {
  Event none;
  EXPECT_TRUE(none.is_done());
  none.wait();
  Tensor x = ones({300, 300});
  for (int i = 0; i < 5; ++i) x = matmul(x, x) * 0.001;
  const Event event(default_device());
  event.wait();
  EXPECT_TRUE(event.is_done());
  EXPECT_TRUE(throws(Code::invalid, {"[event]"}, [] { Event event{Device()}; }));
}

TEST(GeneratorScopes, DrawFromTheCallersState) {
  const Device device = default_device();
  manual_seed(3);
  const Tensor first = rand({6}), later = randn({5});
  const GeneratorState after = generator_state(device);
  GeneratorState own{3, 0};
  manual_seed(11);
  const GeneratorState before = generator_state(device);
  {
    const GeneratorScope scope(device, own);
    EXPECT_EQ(elements(rand({6})), elements(first));
    EXPECT_EQ(elements(randn({5})), elements(later));
    GeneratorState inner{5, 7};
    {
      const GeneratorScope deeper(device, inner);
      EXPECT_EQ(generator_state(device), (GeneratorState{5, 7}));
      std::thread([&] { EXPECT_EQ(generator_state(device), before); }).join();
      (void)randint(9, {4});
    }
    EXPECT_GT(inner.offset, 7u);
  }
  EXPECT_EQ(own, after);
  EXPECT_EQ(generator_state(device), before);
}

TEST(GeneratorScopes, EndInAnyOrderAndOnAnyThread) {
  const Device device = default_device();
  manual_seed(2);
  GeneratorState a{1, 0}, b{2, 0}, c{3, 0};
  auto first = std::make_unique<GeneratorScope>(device, a), second = std::make_unique<GeneratorScope>(device, b);
  first.reset();
  EXPECT_EQ(generator_state(device), b);
  auto third = std::make_unique<GeneratorScope>(device, c);
  std::thread([&] { third.reset(); }).join();
  EXPECT_EQ(generator_state(device), b);
  second.reset();
  EXPECT_EQ(generator_state(device), (GeneratorState{2, 0}));
  EXPECT_TRUE(throws(Code::invalid, {"[generator]"}, [] { generator_state(Device()); }));
}

TEST(GeneratorScopes, ServeCompiledSteps) {
  const Device device = default_device();
  auto step = compile([](const Tensor& x) { return add(x, rand({6})); });
  const Tensor x = zeros({6});
  GeneratorState own{3, 0}, again{3, 0};
  std::vector<std::vector<double>> drawn, eager;
  for (int i = 0; i < 3; ++i) {
    const GeneratorScope scope(device, own);
    drawn.push_back(elements(step(x)));
  }
  for (int i = 0; i < 3; ++i) {
    const GeneratorScope scope(device, again);
    eager.push_back(elements(rand({6})));
  }
  EXPECT_EQ(drawn, eager);
  EXPECT_EQ(own, again);
}

TEST(SdkHeaders, NameNothingThatTheCoreNames) {
  static_assert(std::has_virtual_destructor_v<Function>);
  EXPECT_EQ(OpFunction<PLUGRAD_OP_ADD>()(2.0f, 3.0f), add(Tensor::from<float>({2}, {1}), 3).item<float>());
}

}  // namespace
}  // namespace plugrad::test
