// The checks that each rank of a communicator runs.
#include <plugrad/sdk/dtypes.hpp>
#include <sdk/conformance/communicator_rank.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>

namespace plugrad::conformance {
namespace {
using Bytes = std::vector<char>;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint64_t kCounts[] = {1, 3, 1001, 300007};
constexpr const char* kKinds[] = {"",           "barrier",    "broadcast", "all_reduce", "reduce_scatter",
                                  "all_gather", "all_to_all", "send",      "recv"};
constexpr const char* kHows[] = {"", "sum", "minimum", "maximum", "product", "average"};

// Element k of rank r: small whole numbers, whose sums and products every dtype holds.
int number(int rank, uint64_t k) { return 1 + static_cast<int>((k + static_cast<uint64_t>(rank)) % 3); }

Bytes filled(uint8_t dtype, uint64_t count, const std::function<int(uint64_t)>& element) {
  Bytes bytes(count * static_cast<uint64_t>(element_size(dtype)));
  with_element_type(dtype, [&]<class T>(T) {
    for (uint64_t k = 0; k < count; ++k) {
      const T value = static_cast<T>(static_cast<ComputeType<T>>(element(k)));
      std::memcpy(bytes.data() + k * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}
Bytes of_rank(uint8_t dtype, uint64_t count, int rank) {
  return filled(dtype, count, [&](uint64_t k) { return number(rank, k); });
}

int reduced(uint32_t how, int size, uint64_t k) {
  int result = number(0, k);
  for (int r = 1; r < size; ++r) {
    const int next = number(r, k);
    if (how == PLUGRAD_REDUCE_SUM || how == PLUGRAD_REDUCE_AVERAGE) result += next;
    else if (how == PLUGRAD_REDUCE_PRODUCT) result *= next;
    else result = how == PLUGRAD_REDUCE_MIN ? std::min(result, next) : std::max(result, next);
  }
  return how == PLUGRAD_REDUCE_AVERAGE ? result / size : result;
}

std::string text(const plugrad_collective& c) {
  return std::string(kKinds[c.kind]) + (c.how ? std::string(" by ") + kHows[c.how] : "") + " of " + std::to_string(c.count) +
         " " + dtype_info(static_cast<uint8_t>(c.dtype))->label;
}

// Runs a collective and compares its result. Notes what the engine declines.
void compare(Rank& rank, plugrad_group* group, const plugrad_collective& c, const Bytes& result, const Bytes& wanted,
             std::set<std::string>& declined) {
  const Outcome outcome = rank.run(group, c);
  if (outcome.status == PLUGRAD_UNSUPPORTED) {
    declined.insert(std::string(kKinds[c.kind]) + " of " + dtype_info(static_cast<uint8_t>(c.dtype))->label);
    return;
  }
  if (!outcome.ok()) throw Breach(text(c) + ": " + outcome.text());
  rank.expect(result == wanted, text(c) + ": wrong elements");
}

void reductions(Rank& rank, plugrad_group* group, uint8_t dtype, uint64_t count, std::set<std::string>& declined) {
  const auto size = static_cast<uint64_t>(rank.size());
  // The three ranks have the numbers 1, 2 and 3 in some order, so the average is whole.
  const bool averages = rank.table().capabilities & PLUGRAD_COMM_AVERAGES && rank.size() == 3 && is_floating(dtype);
  const uint32_t last = averages ? PLUGRAD_REDUCE_AVERAGE : PLUGRAD_REDUCE_PRODUCT;
  for (uint32_t how = PLUGRAD_REDUCE_SUM; how <= last; ++how) {
    const Bytes from = of_rank(dtype, count, rank.rank()), before = from;
    const Bytes wanted = filled(dtype, count, [&](uint64_t k) { return reduced(how, rank.size(), k); });
    Bytes to(from.size());
    plugrad_collective c = rank.collective(PLUGRAD_COLL_ALL_REDUCE, dtype, from.data(), to.data(), count);
    c.how = how;
    compare(rank, group, c, to, wanted, declined);
    rank.expect(from == before, text(c) + ": it wrote `from`");
    to = from;
    c = rank.collective(PLUGRAD_COLL_ALL_REDUCE, dtype, to.data(), to.data(), count);
    c.how = how;
    compare(rank, group, c, to, wanted, declined);
    const Bytes all = of_rank(dtype, count * size, rank.rank());
    const uint64_t begin = static_cast<uint64_t>(rank.rank()) * count;
    c = rank.collective(PLUGRAD_COLL_REDUCE_SCATTER, dtype, all.data(), to.data(), count);
    c.how = how;
    compare(rank, group, c, to, filled(dtype, count, [&](uint64_t k) { return reduced(how, rank.size(), begin + k); }),
            declined);
  }
}

void movements(Rank& rank, plugrad_group* group, uint8_t dtype, uint64_t count, std::set<std::string>& declined) {
  const int size = rank.size();
  const Bytes mine = of_rank(dtype, count, rank.rank());
  for (int source = 0; source < size; ++source) {
    Bytes x = mine;
    plugrad_collective c = rank.collective(PLUGRAD_COLL_BROADCAST, dtype, x.data(), x.data(), count);
    c.peer = source;
    compare(rank, group, c, x, of_rank(dtype, count, source), declined);
  }
  Bytes joined, exchanged, sent;
  for (int r = 0; r < size; ++r) {
    const Bytes theirs = of_rank(dtype, count, r), block = of_rank(dtype, count, r + rank.rank());
    joined.insert(joined.end(), theirs.begin(), theirs.end());
    sent.insert(sent.end(), block.begin(), block.end());
    exchanged.insert(exchanged.end(), block.begin(), block.end());  // the sum of both ranks is the same on both sides
  }
  Bytes to(joined.size());
  compare(rank, group, rank.collective(PLUGRAD_COLL_ALL_GATHER, dtype, mine.data(), to.data(), count), to, joined, declined);
  compare(rank, group, rank.collective(PLUGRAD_COLL_ALL_TO_ALL, dtype, sent.data(), to.data(), count), to, exchanged,
          declined);
}

void note_declined(Rank& rank, const std::set<std::string>& declined) {
  std::string list;
  for (const std::string& each : declined) list += (list.empty() ? "" : ", ") + each;
  if (!list.empty()) rank.skip("declined, so a core composes them: " + list);
}

void collectives(Rank& rank) {
  plugrad_group* const group = rank.open(0);
  std::set<std::string> declined;
  for (const DTypeInfo& each : kDTypes)
    for (const uint64_t count : kCounts) {
      if (each.dtype != PLUGRAD_BOOL) reductions(rank, group, each.dtype, count, declined);
      if (each.dtype != PLUGRAD_BOOL) movements(rank, group, each.dtype, count, declined);
    }
  const Outcome barrier = rank.run(group, rank.collective(PLUGRAD_COLL_BARRIER, PLUGRAD_U8, nullptr, nullptr, 0));
  rank.expect(barrier.ok() || barrier.status == PLUGRAD_UNSUPPORTED, "barrier: " + barrier.text());
  rank.table().close(group);
  note_declined(rank, declined);
}

// Rank r sends r * i elements to rank i, so some parts are empty.
void uneven_parts(Rank& rank) {
  plugrad_group* const group = rank.open(0);
  std::vector<uint64_t> counts;
  uint64_t total = 0;
  for (int side = 0; side < 2; ++side)
    for (int i = 0; i < rank.size(); ++i) counts.push_back(static_cast<uint64_t>(rank.rank() * i));
  total = std::accumulate(counts.begin(), counts.begin() + rank.size(), uint64_t{0});
  const Bytes from = filled(PLUGRAD_I32, total + 1, [&](uint64_t) { return rank.rank() + 1; });
  Bytes to(from.size());
  Bytes wanted;
  for (int i = 0; i < rank.size(); ++i) {
    const Bytes part = filled(PLUGRAD_I32, counts[static_cast<size_t>(i)], [&](uint64_t) { return i + 1; });
    wanted.insert(wanted.end(), part.begin(), part.end());
  }
  plugrad_collective c = rank.collective(PLUGRAD_COLL_ALL_TO_ALL, PLUGRAD_I32, from.data(), to.data(), 0);
  c.counts = counts.data();
  const Outcome outcome = rank.run(group, c);
  to.resize(wanted.size());
  if (outcome.status == PLUGRAD_UNSUPPORTED) rank.skip("uneven all_to_all is declined");
  else rank.expect(outcome.ok() && to == wanted, "all_to_all of uneven parts: " + outcome.text());
  rank.table().close(group);
}

// Around a ring, several at once: messages of two ranks match in their order.
void messages(Rank& rank) {
  plugrad_group* const group = rank.open(0);
  const int next = (rank.rank() + 1) % rank.size(), before = (rank.rank() + rank.size() - 1) % rank.size();
  constexpr uint64_t kSizes[] = {1, 5, 1000, 200003};
  std::vector<Bytes> out, in;
  std::vector<plugrad_work*> works;
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    out.push_back(of_rank(PLUGRAD_F32, kSizes[i], rank.rank()));
    in.emplace_back(out.back().size());
    plugrad_collective sent = rank.collective(PLUGRAD_COLL_SEND, PLUGRAD_F32, out.back().data(), nullptr, kSizes[i]);
    plugrad_collective received = rank.collective(PLUGRAD_COLL_RECV, PLUGRAD_F32, nullptr, in.back().data(), kSizes[i]);
    sent.peer = next;
    received.peer = before;
    sent.number = received.number = i + 1;
    sent.fingerprint = received.fingerprint = (i + 1) * 0x9e3779b97f4a7c15u;
    for (const plugrad_collective* each : {&received, &sent}) {
      const Rank::Started started = rank.start(group, *each);
      if (!started.outcome.ok()) throw Breach(std::string(kKinds[each->kind]) + ": " + started.outcome.text());
      works.push_back(started.work);
    }
  }
  for (plugrad_work* each : works) {
    const Outcome outcome = rank.finish(each, kCommTimeout);
    rank.expect(outcome.ok(), "a message: " + outcome.text());
  }
  for (size_t i = 0; i < in.size(); ++i)
    rank.expect(in[i] == of_rank(PLUGRAD_F32, kSizes[i], before), "message " + std::to_string(i) + ": wrong elements");
  rank.table().close(group);
}

// Checks a group by the sum of its ranks in the group of all, as the group's first collective.
void expect_sum(Rank& rank, plugrad_group* group, double wanted, const char* which) {
  double sum = rank.rank();
  plugrad_collective c = rank.collective(PLUGRAD_COLL_ALL_REDUCE, PLUGRAD_F64, &sum, &sum, 1);
  c.how = PLUGRAD_REDUCE_SUM;
  c.number = 1;
  c.fingerprint = 0x9e3779b97f4a7c15u;
  const Outcome outcome = rank.run(group, c);
  if (outcome.status == PLUGRAD_UNSUPPORTED) return rank.skip("all_reduce of f64 is declined, so groups were not compared");
  rank.expect(outcome.ok() && sum == wanted, std::string(which) + ": " + outcome.text() + ", sum " + std::to_string(sum));
}

void groups(Rank& rank) {
  plugrad_group* const all = rank.open(0);
  const int color = rank.rank() == 1 ? -1 : 0;  // all but rank 1
  plugrad_group* part = nullptr;
  int32_t own = -1, size = -1;
  const Outcome split = attempt("split", [&] { return rank.table().split(all, color, 1, &part, &own, &size); });
  if (!split.ok()) throw Breach("split: " + split.text());
  rank.expect((part == nullptr) == (color < 0), "split stored a group for color -1, or none for another color");
  if (part) {
    rank.expect(size == rank.size() - 1 && own == (rank.rank() ? rank.rank() - 1 : 0),
                "split stored rank " + std::to_string(own) + " of " + std::to_string(size));
    expect_sum(rank, part, rank.size() * (rank.size() - 1) / 2 - 1, "the part");
    rank.table().close(part);
  }
  expect_sum(rank, all, rank.size() * (rank.size() - 1) / 2, "the whole after its part was closed");
  rank.table().close(all);
  plugrad_group* const again = rank.open(1);
  expect_sum(rank, again, rank.size() * (rank.size() - 1) / 2, "a group of another generation");
  rank.table().close(again);
}

// A group in which all ranks have been; a rank may fail after that.
plugrad_group* opened_by_all(Rank& rank) {
  plugrad_group* const group = rank.open(0);
  char byte = 1;
  std::vector<char> all(static_cast<size_t>(rank.size()));
  const Outcome outcome = rank.run(group, rank.collective(PLUGRAD_COLL_ALL_GATHER, PLUGRAD_U8, &byte, all.data(), 1));
  if (!outcome.ok() && outcome.status != PLUGRAD_UNSUPPORTED) throw Breach("all_gather: " + outcome.text());
  return group;
}

// Runs a collective to which not all ranks come. It must end with a status within the time.
void expect_failure(Rank& rank, plugrad_group* group, milliseconds most) {
  const auto begin = Clock::now();
  char byte = 1;
  std::vector<char> all(static_cast<size_t>(rank.size()));
  const plugrad_collective c = rank.collective(PLUGRAD_COLL_ALL_GATHER, PLUGRAD_U8, &byte, all.data(), 1);
  const Outcome outcome = rank.run(group, c);
  const auto taken = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  const bool fails = outcome.status == PLUGRAD_PEER_LOST || outcome.status == PLUGRAD_TIMED_OUT;
  if (outcome.status == PLUGRAD_UNSUPPORTED) rank.skip("all_gather is declined");
  else rank.expect(fails, "PEER_LOST or TIMED_OUT expected, not " + outcome.text());
  rank.expect(taken <= most,
              "it took " + std::to_string(taken.count()) + " ms, at most " + std::to_string(most.count()) + " expected");
  plugrad_group_failure failure{};
  failure.struct_size = sizeof failure;
  failure.rank = -2;
  rank.expect(rank.table().failure(group, &failure) == PLUGRAD_OK && failure.rank >= -1 && failure.rank < rank.size(),
              "failure did not say which rank, or -1");
  rank.table().abort(group);
  rank.table().close(group);
}

// The last rank does not come.
void time_out(Rank& rank) {
  plugrad_group* const group = opened_by_all(rank);
  if (rank.rank() + 1 < rank.size()) return expect_failure(rank, group, kCommTimeout + kCommGrace);
  std::this_thread::sleep_for(kCommTimeout + kCommGrace);
}

// Another thread ends the wait of rank 0.
void abort_from_another_thread(Rank& rank) {
  plugrad_group* const group = opened_by_all(rank);
  if (rank.rank()) return std::this_thread::sleep_for(kCommTimeout);
  if (rank.table().test) return rank.skip("the core ends the polls of an engine with test()");
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(200));
    rank.table().abort(group);
  });
  expect_failure(rank, group, milliseconds(1500));
  other.join();
}

// The last rank is killed.
void death_of_a_rank(Rank& rank) {
  plugrad_group* const group = opened_by_all(rank);
  if (rank.rank() + 1 == rank.size()) {
    std::this_thread::sleep_for(milliseconds(100));  // the others end their collective
    std::raise(SIGKILL);
  }
  std::this_thread::sleep_for(milliseconds(200));
  expect_failure(rank, group, kCommTimeout + kCommGrace);
}
}  // namespace

const std::vector<CommunicatorCheck>& all_communicator_checks() {
  static const std::vector<CommunicatorCheck> checks{
      {"communicator.collectives", collectives, false}, {"communicator.uneven_parts", uneven_parts, false},
      {"communicator.messages", messages, false},       {"communicator.groups", groups, false},
      {"communicator.time_out", time_out, false},       {"communicator.abort", abort_from_another_thread, false},
      {"communicator.death", death_of_a_rank, true},
  };
  return checks;
}

}  // namespace plugrad::conformance
