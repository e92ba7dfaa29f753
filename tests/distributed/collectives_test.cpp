// Collectives of the group of all ranks: each kind, dtype and size, against values that a rank can compute alone.
#include <tests/distributed/ranks.hpp>
#include <tests/error_message.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace plugrad::test {
namespace {
namespace pd = plugrad::distributed;
using pd::Order;
using pd::ReduceOp;

// One element, a piece smaller than the number of ranks, odd numbers, and more than one message of any engine holds.
constexpr int64_t kCounts[] = {0, 1, 3, 1001, 200003};
constexpr DType kReduced[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64,
                              DType::i32, DType::i16, DType::i8,   DType::u8};

int rank() { return pd::get_rank(); }
int size() { return pd::get_world_size(); }

// Element k of rank r: small whole numbers, exact in every dtype.
int64_t element(int r, int64_t k) { return 1 + (k + r) % 3; }

Tensor tensor(int r, int64_t count, DType dtype) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) values[static_cast<size_t>(k)] = element(r, k);
  return cast(Tensor::from(values, {count}), dtype);
}

std::vector<double> numbers(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }

double reduced(ReduceOp op, int64_t k) {
  double result = static_cast<double>(element(0, k));
  for (int r = 1; r < size(); ++r) {
    const auto next = static_cast<double>(element(r, k));
    switch (op) {
      case ReduceOp::min: result = std::min(result, next); break;
      case ReduceOp::max: result = std::max(result, next); break;
      case ReduceOp::product: result *= next; break;
      default: result += next; break;
    }
  }
  return op == ReduceOp::average ? result / size() : result;
}

void expect_reduced(const Tensor& x, ReduceOp op, int64_t begin) {
  const bool rounds = op == ReduceOp::average && (size() & (size() - 1));
  const double tolerance = !rounds ? 0 : x.dtype() == DType::bf16 ? 1e-2 : x.dtype() == DType::f16 ? 1e-3 : 1e-6;
  const std::vector<double> found = numbers(x);
  for (size_t k = 0; k < found.size(); ++k)
    ASSERT_NEAR(found[k], reduced(op, begin + static_cast<int64_t>(k)), tolerance)
        << "element " << k << " of " << found.size() << " " << dtype_name(x.dtype()) << ", op " << static_cast<int>(op);
}

template <class F> void for_each_reduction(F f) {
  for (const DType dtype : kReduced)
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product, ReduceOp::average})
      for (const Order order : {Order::engine, Order::ordered})
        if (op != ReduceOp::average || is_floating(dtype)) f(dtype, op, order);
}

TEST(Collectives, AllReduce) {
  for (const int64_t count : kCounts)
    for_each_reduction([&](DType dtype, ReduceOp op, Order order) {
      if (count > 10000 && op != ReduceOp::sum) return;
      const Tensor x = tensor(rank(), count, dtype);
      pd::all_reduce(x, op, {.order = order});
      expect_reduced(x, op, 0);
    });
}

TEST(Collectives, AnEngineForDevicesTakesTheirMemory) {
  if (pd::world().communicator() != "nccl-emu" || !default_device().name().starts_with("cuda-emu") || size() == 1)
    GTEST_SKIP() << "the engine takes host memory only";
  const auto n = static_cast<float>(size());
  const Tensor x = full({1000}, 1.0 + rank()), all = zeros({size() * 1000}), part = zeros({1000});
  const Tensor blocks = full({size() * 10}, 1.0 + rank()), mixed = zeros({size() * 10}), whole = full({5}, 6, DType::f16);
  x.to_vector<float>();  // what was begun before
  const auto before = default_device().counters();
  pd::all_reduce(x);
  pd::all_gather_into_tensor(all, x);
  pd::reduce_scatter_tensor(part, all, ReduceOp::average);
  pd::broadcast(part, 0);
  pd::all_to_all_single(mixed, blocks);
  pd::all_reduce(whole, ReduceOp::average);
  const auto after = default_device().counters();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(part.to_vector<float>(), std::vector<float>(1000, n * (n + 1) / 2));
  EXPECT_EQ(mixed.to_vector<float>().back(), n);
  EXPECT_EQ(cast(whole, DType::f32).to_vector<float>(), std::vector<float>(5, 6));
  // In another order of elements, the engine gets a copy.
  const Tensor columns = transpose(full({3, 4}, 1.0), 0, 1);
  pd::all_reduce(columns);
  EXPECT_EQ(columns.to_vector<float>(), std::vector<float>(12, n));
  EXPECT_GT(default_device().counters().downloads, after.downloads);
}

// The first calls of a group: its ranks are not connected yet.
TEST(Collectives, MessagesGoOnWhileACollectiveWaits) {
  if (size() == 1) GTEST_SKIP() << "one rank has no other";
  std::vector<int> ranks(static_cast<size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const pd::Group group = pd::new_group(ranks);
  const Tensor sent = full({1000}, 7.0), received = zeros({1000}), sum = ones({3});
  pd::Work sending;
  if (rank() == 0) sending = pd::send(sent, 1, {.group = group, .async_op = true});
  if (rank() == 1) pd::recv(received, 0, {.group = group});
  pd::all_reduce(sum, ReduceOp::sum, {.group = group});
  if (rank() == 0) sending.wait();
  EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(3, static_cast<float>(size())));
  EXPECT_EQ(received.to_vector<float>(), std::vector<float>(1000, rank() == 1 ? 7.f : 0.f));
}

TEST(Collectives, ReduceScatter) {
  for (const int64_t count : {0, 1, 501})
    for_each_reduction([&](DType dtype, ReduceOp op, Order order) {
      const Tensor x = tensor(rank(), count * size(), dtype), mine = zeros({count}, dtype);
      pd::reduce_scatter_tensor(mine, x, op, {.order = order});
      expect_reduced(mine, op, count * rank());
    });
}

TEST(Collectives, AllGather) {
  for (const int64_t count : kCounts)
    for (const DType dtype : kRealDTypes) {
      const Tensor x = tensor(rank(), count, dtype), all = zeros({size() * count}, dtype);
      pd::all_gather_into_tensor(all, x);
      for (int r = 0; r < size(); ++r)
        ASSERT_EQ(numbers(narrow(all, 0, r * count, count)), numbers(tensor(r, count, dtype))) << dtype_name(dtype);
    }
}

TEST(Collectives, Broadcast) {
  for (const int64_t count : kCounts)
    for (int source = 0; source < size(); ++source) {
      const Tensor x = tensor(rank(), count, DType::f32);
      pd::broadcast(x, source);
      ASSERT_EQ(numbers(x), numbers(tensor(source, count, DType::f32)));
    }
}

TEST(Collectives, AllToAllOfEqualParts) {
  for (const int64_t rows : {0, 1, 77}) {
    const Tensor x = reshape(tensor(rank(), size() * rows * 3, DType::i64), {size() * rows, 3}), y = zeros_like(x);
    pd::all_to_all_single(y, x);
    for (int r = 0; r < size(); ++r) {
      const Tensor theirs = reshape(tensor(r, size() * rows * 3, DType::i64), {size() * rows, 3});
      ASSERT_EQ(numbers(narrow(y, 0, r * rows, rows)), numbers(narrow(theirs, 0, rank() * rows, rows)));
    }
  }
}

// Rank r sends r + i rows to rank i, so some parts are empty.
TEST(Collectives, AllToAllOfUnevenParts) {
  std::vector<int64_t> sent, received;
  int64_t out = 0, in = 0;
  for (int i = 0; i < size(); ++i) {
    sent.push_back(rank() * i);
    received.push_back(i * rank());
    out += sent.back();
    in += received.back();
  }
  const Tensor x = full({out, 2}, rank() + 1), y = zeros({in, 2});
  pd::all_to_all_single(y, x, received, sent);
  int64_t begin = 0;
  for (int i = 0; i < size(); ++i) {
    for (const double each : numbers(narrow(y, 0, begin, received[static_cast<size_t>(i)]))) ASSERT_EQ(each, i + 1);
    begin += received[static_cast<size_t>(i)];
  }
}

// Around a ring, several messages at once: those of a pair match in their order, whatever their sizes.
TEST(Collectives, SendAndReceive) {
  if (size() == 1) GTEST_SKIP() << "one rank has no other";
  const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  for (const int64_t count : kCounts) {
    std::vector<Tensor> out, in;
    std::vector<pd::Work> works;
    for (int i = 0; i < 4; ++i) {
      out.push_back(add(tensor(rank(), count + i, DType::f32), i));
      in.push_back(zeros({count + i}));
      works.push_back(pd::send(out.back(), next, {.async_op = true}));
      works.push_back(pd::recv(in.back(), before, {.async_op = true}));
    }
    for (size_t i = works.size(); i-- > 0;) works[i].wait();
    for (int i = 0; i < 4; ++i)
      ASSERT_EQ(numbers(in[static_cast<size_t>(i)]), numbers(add(tensor(before, count + i, DType::f32), i)));
  }
}

TEST(Collectives, SeveralAtOnce) {
  std::vector<Tensor> tensors;
  std::vector<pd::Work> works;
  for (int i = 0; i < 20; ++i) {
    tensors.push_back(full({1000 + i}, rank() + i));
    works.push_back(pd::all_reduce(tensors.back(), ReduceOp::sum, {.async_op = true}));
  }
  pd::barrier();
  for (size_t i = works.size(); i-- > 0;) {
    works[i].wait();
    EXPECT_TRUE(works[i].is_completed());
    ASSERT_EQ(tensors[i].to_vector<float>().back(), size() * (size() - 1) / 2 + size() * static_cast<int>(i));
  }
}

// Views with gaps, and transposed ones.
TEST(Collectives, TensorsNeedNotBeDense) {
  const Tensor x = tensor(rank(), 60, DType::f32), rows = narrow(reshape(x, {6, 10}), 1, 2, 5),
               columns = transpose(rows, 0, 1);
  pd::all_reduce(columns);
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t k = 0; k < 10; ++k) {
      const bool inside = k >= 2 && k < 7;
      const double wanted = inside ? reduced(ReduceOp::sum, 10 * i + k) : static_cast<double>(element(rank(), 10 * i + k));
      ASSERT_EQ(numbers(x)[static_cast<size_t>(10 * i + k)], wanted);
    }
}

// The engine must not write what it has yet to send.
TEST(Collectives, TensorsMayShareMemory) {
  constexpr int64_t kRows = 20000;
  const Tensor x = add(tensor(0, size() * kRows, DType::f32), 10 * rank()), before = clone(x);
  pd::all_to_all_single(x, x);
  for (int r = 0; r < size(); ++r) {
    const Tensor theirs = add(tensor(0, size() * kRows, DType::f32), 10 * r);
    ASSERT_EQ(numbers(narrow(x, 0, r * kRows, kRows)), numbers(narrow(theirs, 0, rank() * kRows, kRows)));
  }
  const Tensor all = zeros({size() * kRows}), mine = narrow(all, 0, rank() * kRows, kRows);
  mine.detach().fill_(rank() + 1);
  pd::all_gather_into_tensor(all, mine);
  for (int r = 0; r < size(); ++r) ASSERT_EQ(numbers(narrow(all, 0, r * kRows, 1))[0], r + 1);
}

// The sum of f16 is infinite where the average is not.
TEST(Collectives, AveragesOfHalvesDoNotOverflow) {
  const Tensor x = full({3}, 40000.0, DType::f16);
  pd::all_reduce(x, ReduceOp::average);
  EXPECT_EQ(numbers(x), std::vector<double>(3, 40000.0));
}

// The sum of numbers that round: a tree over the ranks, whatever the engine and the size of a call.
TEST(Collectives, OrderedSumsAreATree) {
  constexpr int64_t kCount = 5003;
  const auto of_rank = [](int r) {
    std::vector<float> values(kCount);
    for (size_t k = 0; k < values.size(); ++k) values[k] = std::sin(static_cast<float>(k) + 100.f * static_cast<float>(r));
    return values;
  };
  std::vector<std::vector<float>> rows;
  for (int r = 0; r < size(); ++r) rows.push_back(of_rank(r));
  for (size_t step = 1; step < rows.size(); step *= 2)
    for (size_t i = 0; i + step < rows.size(); i += 2 * step)
      for (size_t k = 0; k < kCount; ++k) rows[i][k] += rows[i + step][k];
  const Tensor whole = Tensor::from(of_rank(rank()), {kCount}), parts = Tensor::from(of_rank(rank()), {kCount});
  pd::all_reduce(whole, ReduceOp::sum, {.order = Order::ordered});
  for (int64_t begin = 0; begin < kCount; begin += 1000)
    pd::all_reduce(narrow(parts, 0, begin, std::min<int64_t>(1000, kCount - begin)), ReduceOp::sum,
                   {.order = Order::ordered});
  EXPECT_EQ(whole.to_vector<float>(), rows[0]);
  EXPECT_EQ(parts.to_vector<float>(), rows[0]);
}

// 256 + 1 is 256 in bf16, but the sum of ones is exact in f32.
TEST(Collectives, HalvesAreAddedInF32) {
  const Tensor x = full({10}, rank() == 0 ? 256.0 : 1.0, DType::bf16);
  pd::all_reduce(x, ReduceOp::sum, {.order = Order::ordered});
  const Tensor exact = cast(full({10}, 255.0 + size()), DType::bf16);
  EXPECT_EQ(numbers(x), numbers(exact));
}

TEST(Collectives, DeterministicModeOrders) {
  set_deterministic(true);
  const Tensor x = full({3}, 0.1 * (rank() + 1)), y = clone(x);
  pd::all_reduce(x);
  set_deterministic(false);
  pd::all_reduce(y, ReduceOp::sum, {.order = Order::ordered});
  EXPECT_EQ(numbers(x), numbers(y));
}

TEST(Collectives, ResultsAreWritesInPlace) {
  const Tensor a = full({3}, 2.0).requires_grad_(), saved = full({3}, 3.0);
  const Tensor y = mul(a, saved);
  pd::all_reduce(saved);
  expect_mentions(message_of([&] { sum(y).backward(); }), "changed");
}

TEST(Groups, OfEvenRanks) {
  std::vector<int> even;
  for (int r = 0; r < size(); r += 2) even.push_back(r);
  const pd::Group group = pd::new_group(even);
  ASSERT_EQ(group.defined(), rank() % 2 == 0);
  if (group.defined()) {
    EXPECT_EQ(group.ranks(), even);
    EXPECT_EQ(pd::get_world_size(group), (size() + 1) / 2);
    EXPECT_EQ(pd::get_rank(group), rank() / 2);
    const Tensor x = full({100}, rank());
    pd::all_reduce(x, ReduceOp::sum, {.group = group});
    EXPECT_EQ(x.to_vector<float>().front(), std::accumulate(even.begin(), even.end(), 0));
    pd::broadcast(x, even.back(), {.group = group});
  }
  const Tensor all = full({1}, 1);
  pd::all_reduce(all);
  EXPECT_EQ(all.item<float>(), size());
}

TEST(Groups, SeveralAtOnce) {
  std::vector<pd::Group> alone;
  for (int r = 0; r < size(); ++r) alone.push_back(pd::new_group({r}));
  const Tensor x = full({4}, rank());
  pd::all_reduce(x, ReduceOp::sum, {.group = alone[static_cast<size_t>(rank())]});
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(4, static_cast<float>(rank())));
  EXPECT_EQ(alone[static_cast<size_t>((rank() + 1) % size())].defined(), size() == 1);
}

TEST(Errors, NameWhatIsWrong) {
  const Tensor x = zeros({4});
  const auto expect = [](const auto& action, const char* words) { expect_mentions(message_of(action), words); };
  expect([&] { pd::all_reduce(Tensor()); }, "[all_reduce]");
  expect([&] { pd::all_reduce(zeros({4}, DType::i64), ReduceOp::average); },
         "the average of i64: give a tensor of a floating");
  expect([&] { pd::all_reduce(zeros({4}, DType::boolean)); }, "the sum of bool: cast it to i32");
  expect([&] { pd::all_gather_into_tensor(x, zeros({size() + 4})); }, "elements for ");
  expect([&] { pd::all_gather_into_tensor(zeros({4 * size()}), zeros({4}, DType::f64)); }, "give tensors of one dtype");
  const Tensor rows = zeros({6 * size()});
  expect([&] { pd::all_to_all_single(rows, rows, {1, 2, 3, 4, 5}); }, "numbers of rows with the sum ");
  if (size() == 1)
    expect([&] { pd::all_to_all_single(zeros({3}), zeros({5}), {3}, {5}); }, "sends itself 5 elements and receives 3");
  expect([&] { pd::broadcast(x, size()); }, "is not in this group of");
  expect([&] { pd::send(x, rank()); }, "is this process itself");
  expect([&] { pd::new_group({0, 0}); }, "[new_group] different ranks from 0 to");
  expect([&] { pd::init_process_group(); }, "is in a group already: call destroy_process_group first");
  expect([&] { pd::all_reduce(zeros({2}).requires_grad_()); }, "[all_reduce]");
  expect([&] { pd::all_reduce(mul(zeros({2}).requires_grad_(), 2)); }, "the result of an op would be overwritten");
}

}  // namespace
}  // namespace plugrad::test
