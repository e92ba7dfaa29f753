// Calls from several threads at once, and determinism.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/session.hpp>
#include <sdk/conformance/submission.hpp>
#include <sdk/conformance/trial.hpp>

#include <barrier>
#include <thread>

namespace plugrad::conformance {
namespace {

constexpr int kThreads = 4, kProblems = 4;

// Any thread may run any kernel at any time; with streams, each thread uses its own.
void check_kernels(Session& session, Tally& tally) {
  std::vector<std::thread> threads;
  std::barrier<> start(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&session, &tally, &start] {
      try {
        start.arrive_and_wait();
        Queue queue = session.device.make_queue();
        for (const uint32_t opcode : {PLUGRAD_OP_ADD, PLUGRAD_OP_EXP, PLUGRAD_OP_SUM, PLUGRAD_OP_MATMUL, PLUGRAD_OP_GATHER,
                                      PLUGRAD_OP_UNIFORM, PLUGRAD_OP_COPY}) {
          const Question question = question_for(opcode, PLUGRAD_F32);
          if (!claimed(session, question)) continue;
          Tally found;
          check_cell(session, found, question, Column::dense, queue);
          tally.absorb(found);
        }
      } catch (const Breach& breach) {
        tally.fail(breach.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!tally.cases()) tally.skip("the plugin has none of the ops for this case");
}

void check_resolve(Session& session, Tally& tally) {
  const auto ask = [&session] {
    std::vector<const plugrad_kernel*> answers;
    for (const OpInfo& op : kOps)
      for (uint16_t layout = 0; layout <= PLUGRAD_ALL_LAYOUTS; ++layout)
        if (op.opcode != PLUGRAD_OP_CAST)
          answers.push_back(
              resolve(*session.plugin.table, session.device.handle(), question_for(op.opcode, PLUGRAD_F32), layout));
    return answers;
  };
  std::vector<std::vector<const plugrad_kernel*>> answers(kThreads);
  std::vector<std::thread> threads;
  std::barrier<> start(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      answers[t] = ask();
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& list : answers)
    tally.check(list == answers[0], "resolve returns different kernels to several threads at once");
}

void check_memory(Session& session, Tally& tally) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&session, &tally, t] {
      try {
        Queue queue = session.device.make_queue();
        for (uint64_t i = 1; i <= 50; ++i) {
          const Block block(session.device, i * 100);
          const std::vector<unsigned char> sent(i * 100, static_cast<unsigned char>(i * kThreads + t));
          std::vector<unsigned char> got(sent.size());
          session.device.upload(queue, block.buffer(), 0, sent.data(), sent.size());
          session.device.download(queue, got.data(), block.buffer(), 0, got.size());
          tally.check(got == sent, "copies of several threads at the same time interfere");
        }
      } catch (const Breach& breach) {
        tally.fail(breach.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// FILLs of small vectors with a value of their own, submitted as densely as a thread can.
class DenseFills {
 public:
  DenseFills(Session& session, const plugrad_kernel* fill, int thread)
      : session_(session), fill_(fill), thread_(thread), queue_(session.device.make_queue()),
        block_(session.device, kSlots * kElements * sizeof(float)) {}

  void submit(int round, Tally& tally) {
    for (int slot = 0; slot < kSlots; ++slot) {
      plugrad_view to = vector_view(block_.buffer(), kElements);
      to.offset = static_cast<uint64_t>(slot * kElements) * sizeof(float);
      const plugrad_view number = number_view(value(round, slot));
      const plugrad_view* views[] = {&to, &number};
      plugrad_op op{};
      op.struct_size = sizeof op;
      op.opcode = PLUGRAD_OP_FILL;
      op.views = views;
      op.outputs = op.inputs = 1;
      if (const Outcome outcome = session_.device.run(queue_, fill_, op); !outcome.ok())
        tally.fail("FILL returned " + outcome.text());
    }
  }

  // Returns whether each vector has its value.
  bool verify(int round, Tally& tally) {
    std::vector<float> found(kSlots * kElements);
    session_.device.download(queue_, found.data(), block_.buffer(), 0, block_.bytes());
    for (int i = 0; i < kSlots * kElements; ++i)
      if (const auto wanted = static_cast<float>(value(round, i / kElements)); found[static_cast<size_t>(i)] != wanted) {
        tally.fail("FILL of " + std::to_string(wanted) + " has the value of another call, " +
                   std::to_string(found[static_cast<size_t>(i)]) + ": calls from several threads share their arguments");
        return false;
      }
    tally.count();
    return true;
  }

 private:
  static constexpr int kSlots = 200, kElements = 64;
  int value(int round, int slot) const { return (round * kThreads + thread_) * kSlots + slot; }

  Session& session_;
  const plugrad_kernel* fill_;
  int thread_;
  Queue queue_;
  const Block block_;
};

// The arguments of a call must not reach the work of another thread's call.
void check_dense(Session& session, Tally& tally) {
  constexpr int kRounds = 8;
  const plugrad_kernel* fill =
      resolve(*session.plugin.table, session.device.handle(), question_for(PLUGRAD_OP_FILL, PLUGRAD_F32), PLUGRAD_IMMEDIATE);
  if (!fill) return tally.skip("the plugin has no FILL of f32");
  std::barrier<> start(kThreads);
  std::vector<std::jthread> threads;  // end before the barrier
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      try {
        DenseFills fills(session, fill, t);
        for (int round = 0; round < kRounds; ++round) {
          start.arrive_and_wait();
          fills.submit(round, tally);
          if (!fills.verify(round, tally)) break;
        }
      } catch (const Breach& breach) {
        tally.fail(breach.what());
      }
      start.arrive_and_drop();
    });
}

// With DETERMINISTIC, two runs must give the same bits.
void check_deterministic(Session& session, Tally& tally) {
  Queue queue = session.device.make_queue();
  for (const OpInfo& op : kOps) {
    const OpRow& row = row_of(op.opcode);
    if (!op.is_for(PLUGRAD_F32) || op.opcode == PLUGRAD_OP_CAST || row.only_immediates()) continue;
    const Question question = question_for(op.opcode, PLUGRAD_F32, PLUGRAD_DETERMINISTIC);
    const plugrad_kernel* kernel = resolve(*session.plugin.table, session.device.handle(), question, 0);
    if (!kernel) continue;
    note_running("thread.deterministic " + text_of(question));
    Random random(session.settings.seed);
    Arrangement dense;
    dense.operands.resize(question.dtypes.size());
    int tried = 0;
    for (const Problem& problem : row.problems(question, random)) {
      if (!problem.large || tried++ == kProblems) continue;
      Batch batch(session.device, queue, row, question, kernel);
      batch.add(laid_out(row, question, problem, dense, session.device.info().alignment));
      batch.run();
      const std::vector<Array> first = batch.results(batch.trials()[0]);
      for (int again = 0; again < 2; ++again) {
        batch.run();
        const std::vector<Array> next = batch.results(batch.trials()[0]);
        for (size_t k = 0; k < first.size(); ++k)
          tally.check(next[k].bytes() == first[k].bytes(),
                      text_of(question) + " " + text_of(batch.trials()[0]) + ": a second run gives different bits");
      }
    }
  }
  if (!tally.cases()) tally.skip("no kernel serves DETERMINISTIC");
}

}  // namespace

std::vector<Case> thread_cases() {
  return {{"thread.kernels", check_kernels},
          {"thread.resolve", check_resolve},
          {"thread.memory", check_memory},
          {"thread.dense", check_dense},
          {"thread.deterministic", check_deterministic}};
}

}  // namespace plugrad::conformance
