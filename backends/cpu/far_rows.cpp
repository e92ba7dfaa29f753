#include <backends/cpu/far_rows.hpp>

#include <backends/cpu/fusion_code.hpp>

#include <array>
#include <atomic>
#include <memory>

namespace plugrad::cpu {
namespace {
constexpr uint32_t kOpcodes = 256;
constexpr unsigned kSingles = 4;

FusedRun run_of(uint32_t opcode, bool is_double, int inputs, unsigned singles) {
  FusedRun run{is_double, {{opcode, {0}}}, {0}, {}, {}};
  for (int i = 0; i < inputs; ++i) {
    const auto value = static_cast<uint16_t>(1 + i);
    run.ops[0].operands.push_back(value);
    run.inputs.push_back(value);
    run.is_single.push_back(singles >> i & 1);
  }
  return run;
}
}  // namespace

// Takes no lock, so a forked child may call it. The code is never released.
RowFunction far_row(uint32_t opcode, uint8_t dtype, int inputs, unsigned singles, int vector_bytes) {
  const bool is_double = dtype == PLUGRAD_F64, serves = vector_bytes && (is_double || dtype == PLUGRAD_F32);
  if (!serves || inputs > 2 || opcode >= kOpcodes || !is_fusable(opcode) || opcode == PLUGRAD_OP_WHERE) return nullptr;
  static std::array<std::atomic<const FusedCode*>, kOpcodes * kSingles * 4> all;
  const size_t at = ((opcode * kSingles + singles) * 2 + is_double) * 2 + (vector_bytes == 64);
  if (const FusedCode* const known = all[at].load(std::memory_order_acquire)) return known->function;
  const FusedRun run = run_of(opcode, is_double, inputs, singles);
  FarOperands far{run.is_single, {true}};
  far.is_read_ahead.flip();
  auto made = std::make_unique<const FusedCode>(compile(run, vector_bytes, far));
  const FusedCode* expected = nullptr;
  if (all[at].compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return made.release()->function;
  return expected->function;
}

}  // namespace plugrad::cpu
