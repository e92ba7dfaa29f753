#include <backends/cpu/fusion_code.hpp>

#include <backends/cpu/streaming.hpp>

#include <algorithm>
#include <map>

#ifdef PLUGRAD_CPU_XBYAK
#include <xbyak/xbyak.h>
#endif

namespace plugrad::cpu {
namespace {
bool is_comparison(uint32_t opcode) {
  return opcode == PLUGRAD_OP_EQ || opcode == PLUGRAD_OP_NE || opcode == PLUGRAD_OP_LT || opcode == PLUGRAD_OP_LE;
}
}  // namespace

bool is_fusable(uint32_t opcode) {
  switch (opcode) {
    case PLUGRAD_OP_FILL:
    case PLUGRAD_OP_COPY:
    case PLUGRAD_OP_NEG:
    case PLUGRAD_OP_ABS:
    case PLUGRAD_OP_SIGN:
    case PLUGRAD_OP_SQRT:
    case PLUGRAD_OP_RELU:
    case PLUGRAD_OP_ADD:
    case PLUGRAD_OP_SUB:
    case PLUGRAD_OP_MUL:
    case PLUGRAD_OP_DIV:
    case PLUGRAD_OP_MAXIMUM:
    case PLUGRAD_OP_MINIMUM:
    case PLUGRAD_OP_WHERE:
    case PLUGRAD_OP_RELU_BACKWARD:
    case PLUGRAD_OP_SIGMOID_BACKWARD:
    case PLUGRAD_OP_TANH_BACKWARD: return true;
    default: return is_comparison(opcode);
  }
}

#ifdef PLUGRAD_CPU_XBYAK
namespace {
using namespace Xbyak;

struct OutOfRegisters {};

// Predicates of vcmpps without a signal for quiet NaN.
enum : uint8_t {
  kEqual = 0x00,
  kUnordered = 0x03,
  kNotEqual = 0x04,
  kLess = 0x11,
  kLessEqual = 0x12,
  kNotLess = 0x15,
  kNotLessEqual = 0x16,
  kGreater = 0x1e
};

class Generator : public CodeGenerator {
 public:
  Generator(const FusedRun& run, bool is_wide, const FarOperands& far)
      : CodeGenerator(4096, AutoGrow), run_(run), is_wide_(is_wide), far_(far) {
    generate();
    ready(PROTECT_RE);
  }

 private:
  // The steps of a pass over the operands: whole vectors, or the remaining elements.
  enum class Pass { vectors, rest };

  int64_t size() const { return run_.is_double ? 8 : 4; }
  int64_t lanes() const { return (is_wide_ ? 64 : 32) / size(); }

  // rdi: the operands; rsi: the elements; r8: the number of elements done. The first pointers stay in registers.
  static constexpr int kPointers = 11;
  const Reg64& pointer_register(int i) const {
    static const Reg64 all[kPointers] = {util::rcx, util::rdx, util::r9,  util::r10, util::r11, util::rbx,
                                         util::rbp, util::r12, util::r13, util::r14, util::r15};
    return all[i];
  }

  void generate() {
    const auto operands = static_cast<int>(run_.results.size() + run_.inputs.size());
    const int saved = std::clamp(operands - 5, 0, 6);
    for (int i = 0; i < saved; ++i) push(pointer_register(5 + i));
    for (int k = 0; k < std::min(operands, kPointers); ++k) mov(pointer_register(k), ptr[rdi + 8 * k]);
    for (int i = 0; i < (is_wide_ ? 30 : 14); ++i) free_.push_back(i);
    hoist();
    const std::vector<int> free = free_;
    Label vectors, rest, end;
    xor_(r8, r8);
    L(vectors);
    lea(rax, ptr[r8 + static_cast<size_t>(lanes())]);
    cmp(rax, rsi);
    jg(rest, T_NEAR);
    body(Pass::vectors);
    add(r8, static_cast<uint32_t>(lanes()));
    jmp(vectors, T_NEAR);
    L(rest);
    cmp(r8, rsi);
    jge(end, T_NEAR);
    free_ = free;
    if (is_wide_) make_mask();
    body(Pass::rest);
    add(r8, is_wide_ ? static_cast<uint32_t>(lanes()) : 1);
    jmp(rest, T_NEAR);
    L(end);
    for (int i = saved; i-- > 0;) pop(pointer_register(5 + i));
    vzeroupper();
    ret();
    place_constants();
  }

  // k1: the remaining lanes.
  void make_mask() {
    mov(rax, rsi);
    sub(rax, r8);
    push(rcx);
    mov(rcx, rax);
    mov(rax, -1);
    shl(rax, cl);
    not_(rax);
    pop(rcx);
    kmovw(k1, eax);
  }

  // --- Registers.

  Xmm vec(int i, Pass pass) const {
    if (pass == Pass::rest && !is_wide_) return Xmm(i);
    return is_wide_ ? static_cast<Xmm>(Zmm(i)) : static_cast<Xmm>(Ymm(i));
  }
  int take() {
    if (free_.empty()) throw OutOfRegisters();
    const int found = free_.back();
    free_.pop_back();
    return found;
  }
  int temporary(int i) const { return (is_wide_ ? 30 : 14) + i; }

  // Some single elements stay in registers.
  void hoist() {
    size_t left = is_wide_ ? 12 : 4;
    for (size_t k = 0; k < run_.inputs.size() && left; ++k) {
      if (!run_.is_single[k]) continue;
      const int to = take();
      broadcast(vec(to, Pass::vectors), address_of(run_.results.size() + k, true));
      hoisted_[run_.inputs[k]] = to;
      --left;
    }
  }

  // Returns an operand's address. Its pointer may need rax.
  Address address_of(size_t operand, bool is_single, int ahead = 0) {
    const auto k = static_cast<int>(operand);
    if (k >= kPointers) mov(rax, ptr[rdi + 8 * k]);
    const Reg64& base = k < kPointers ? pointer_register(k) : rax;
    if (is_single) return ptr[base];
    return size() == 8 ? ptr[base + r8 * 8 + ahead] : ptr[base + r8 * 4 + ahead];
  }

  void broadcast(const Xmm& to, const Address& from) {
    if (!run_.is_double) vbroadcastss(to, from);
    else if (to.isXMM()) vmovddup(to, from);
    else if (to.isZMM()) vbroadcastsd(Zmm(to.getIdx()), from);
    else vbroadcastsd(Ymm(to.getIdx()), from);
  }
  void load(const Xmm& to, const Address& from, Pass pass) {
    const bool part = pass == Pass::rest;
    if (part && !is_wide_) return run_.is_double ? vmovsd(to, from) : vmovss(to, from);
    const Zmm some = Zmm(to.getIdx()) | k1 | T_z;
    if (part) return run_.is_double ? vmovupd(some, from) : vmovups(some, from);
    return run_.is_double ? vmovupd(to, from) : vmovups(to, from);
  }
  void store(const Address& to, const Xmm& from, Pass pass) {
    const bool part = pass == Pass::rest;
    if (part && !is_wide_) return run_.is_double ? vmovsd(to, from) : vmovss(to, from);
    if (part) return run_.is_double ? vmovupd(to | k1, Zmm(from.getIdx())) : vmovups(to | k1, Zmm(from.getIdx()));
    return run_.is_double ? vmovupd(to, from) : vmovups(to, from);
  }

  // --- The ops, for one vector.

  void body(Pass pass) {
    where_.clear();
    std::map<uint16_t, size_t> last;
    for (size_t i = 0; i < run_.ops.size(); ++i)
      for (const uint16_t value : run_.ops[i].operands) last[value] = i;
    for (const uint16_t value : run_.results) last[value] = run_.ops.size();
    masks_.clear();
    free_masks_ = {2, 3, 4, 5, 6};
    for (size_t i = 0; i < run_.ops.size(); ++i) {
      const FusedOp& op = run_.ops[i];
      for (size_t k = 1; k < op.operands.size(); ++k) fetch(op.operands[k], pass);
      compute(op, pass);
      for (const uint16_t value : op.operands)
        if (last[value] == i) release(value);
    }
    for (size_t k = 0; k < run_.results.size(); ++k) {
      const Xmm from = vec(where_.at(run_.results[k]), pass);
      if (pass == Pass::vectors && !far_.is_written_ahead.empty() && far_.is_written_ahead[k])
        prefetchw(address_of(k, false, kWriteAhead));
      if (pass == Pass::rest || far_.is_streamed.empty() || !far_.is_streamed[k]) store(address_of(k, false), from, pass);
      else run_.is_double ? vmovntpd(address_of(k, false), from) : vmovntps(address_of(k, false), from);
    }
    for (const uint16_t value : run_.results) release(value);
  }

  void fetch(uint16_t value, Pass pass) {
    if (where_.contains(value) || hoisted_.contains(value) || masks_.contains(value)) return;
    const auto found = std::find(run_.inputs.begin(), run_.inputs.end(), value);
    const auto k = static_cast<size_t>(found - run_.inputs.begin());
    const int to = take();
    where_[value] = to;
    if (pass == Pass::vectors && !far_.is_read_ahead.empty() && far_.is_read_ahead[k])
      prefetcht0(address_of(run_.results.size() + k, false, kReadAhead));
    const Address from = address_of(run_.results.size() + k, run_.is_single[k]);
    if (run_.is_single[k]) broadcast(vec(to, pass), from);
    else load(vec(to, pass), from, pass);
  }
  void release(uint16_t value) {
    if (const auto found = where_.find(value); found != where_.end()) {
      free_.push_back(found->second);
      where_.erase(found);
    }
    if (const auto found = masks_.find(value); found != masks_.end()) {
      if (is_wide_) free_masks_.push_back(found->second);
      else free_.push_back(found->second);
      masks_.erase(found);
    }
  }
  Xmm at(uint16_t value, Pass pass) const {
    const auto hoisted = hoisted_.find(value);
    return vec(hoisted == hoisted_.end() ? where_.at(value) : hoisted->second, pass);
  }

  void compute(const FusedOp& op, Pass pass) {
    if (is_comparison(op.opcode)) return compare(op, pass);
    const int to = take();
    const Xmm d = vec(to, pass), a = op.opcode == PLUGRAD_OP_WHERE ? d : at(op.operands[1], pass);
    const Xmm b = op.operands.size() > 2 ? at(op.operands[2], pass) : a;
    const Xmm t = vec(temporary(0), pass);
    switch (op.opcode) {
      case PLUGRAD_OP_FILL:
      case PLUGRAD_OP_COPY: vmovaps(d, a); break;
      case PLUGRAD_OP_ADD: run_.is_double ? vaddpd(d, a, b) : vaddps(d, a, b); break;
      case PLUGRAD_OP_SUB: run_.is_double ? vsubpd(d, a, b) : vsubps(d, a, b); break;
      case PLUGRAD_OP_MUL: multiply(d, a, b); break;
      case PLUGRAD_OP_DIV: run_.is_double ? vdivpd(d, a, b) : vdivps(d, a, b); break;
      case PLUGRAD_OP_SQRT: run_.is_double ? vsqrtpd(d, a) : vsqrtps(d, a); break;
      case PLUGRAD_OP_NEG: bits_of(d, a, kSign, true); break;
      case PLUGRAD_OP_ABS: bits_of(d, a, kRest, false); break;
      case PLUGRAD_OP_SIGN: sign(d, a, pass); break;
      case PLUGRAD_OP_RELU: keep_where(d, a, a, kNotLess, pass); break;
      case PLUGRAD_OP_RELU_BACKWARD: keep_where(d, a, b, kNotLessEqual, pass); break;
      case PLUGRAD_OP_MAXIMUM:
        run_.is_double ? vmaxpd(t, a, b) : vmaxps(t, a, b);
        choose(d, a, t, a, a, kUnordered, pass);
        break;
      case PLUGRAD_OP_MINIMUM:
        run_.is_double ? vminpd(t, a, b) : vminps(t, a, b);
        choose(d, a, t, a, a, kUnordered, pass);
        break;
      case PLUGRAD_OP_SIGMOID_BACKWARD: sigmoid_backward(d, a, b, t); break;
      case PLUGRAD_OP_TANH_BACKWARD: tanh_backward(d, a, b, t); break;
      case PLUGRAD_OP_WHERE: where(d, op, pass); break;
      default: throw OutOfRegisters();
    }
    where_[op.operands[0]] = to;
  }

  void multiply(const Xmm& d, const Xmm& a, const Xmm& b) { run_.is_double ? vmulpd(d, a, b) : vmulps(d, a, b); }
  void subtract(const Xmm& d, const Xmm& a, const Xmm& b) { run_.is_double ? vsubpd(d, a, b) : vsubps(d, a, b); }
  void test(const Opmask& to, const Xmm& a, const Xmm& b, uint8_t predicate) {
    run_.is_double ? vcmppd(to, a, b, predicate) : vcmpps(to, a, b, predicate);
  }
  void test(const Xmm& to, const Xmm& a, const Xmm& b, uint8_t predicate) {
    run_.is_double ? vcmppd(to, a, b, predicate) : vcmpps(to, a, b, predicate);
  }
  // grad (y (1 - y))
  void sigmoid_backward(const Xmm& d, const Xmm& grad, const Xmm& y, const Xmm& t) {
    constant(t, kOne);
    subtract(t, t, y);
    multiply(t, y, t);
    multiply(d, grad, t);
  }
  // grad (1 - y y)
  void tanh_backward(const Xmm& d, const Xmm& grad, const Xmm& y, const Xmm& t) {
    multiply(d, y, y);
    constant(t, kOne);
    subtract(t, t, d);
    multiply(d, grad, t);
  }
  void zero(const Xmm& to) { vxorps(Xmm(to.getIdx()), Xmm(to.getIdx()), Xmm(to.getIdx())); }

  // a where `x predicate 0` holds, else 0
  void keep_where(const Xmm& d, const Xmm& a, const Xmm& x, uint8_t predicate, Pass pass) {
    const Xmm t = vec(temporary(1), pass);
    if (is_wide_) {
      vpxord(Zmm(t.getIdx()), Zmm(t.getIdx()), Zmm(t.getIdx()));
      test(k7, x, t, predicate);
      const Zmm to(d.getIdx()), from(a.getIdx());
      return run_.is_double ? vmovapd(to | k7 | T_z, from) : vmovaps(to | k7 | T_z, from);
    }
    zero(t);
    test(t, x, t, predicate);
    vandps(d, a, t);
  }
  // a where `x predicate y` holds, else b
  void choose(const Xmm& d, const Xmm& a, const Xmm& b, const Xmm& x, const Xmm& y, uint8_t predicate, Pass pass) {
    if (is_wide_) {
      test(k7, x, y, predicate);
      return blend(d, k7, a, b);
    }
    const Xmm t = vec(temporary(1), pass);
    test(t, x, y, predicate);
    run_.is_double ? vblendvpd(d, b, a, t) : vblendvps(d, b, a, t);
  }
  void blend(const Xmm& d, const Opmask& mask, const Xmm& a, const Xmm& b) {
    const Zmm to(d.getIdx()), otherwise(b.getIdx());
    run_.is_double ? vblendmpd(to | mask, otherwise, Zmm(a.getIdx())) : vblendmps(to | mask, otherwise, Zmm(a.getIdx()));
  }

  // 1 where x > 0, -1 where x < 0, else x
  void sign(const Xmm& d, const Xmm& x, Pass pass) {
    const Xmm t = vec(temporary(0), pass), z = vec(take(), pass), p = vec(take(), pass);
    is_wide_ ? vpxord(Zmm(z.getIdx()), Zmm(z.getIdx()), Zmm(z.getIdx())) : zero(z);
    constant(t, kOne);
    choose(p, t, x, x, z, kGreater, pass);
    constant(t, kMinusOne);
    choose(d, t, p, x, z, kLess, pass);
    free_.push_back(z.getIdx());
    free_.push_back(p.getIdx());
  }

  // Comparisons are masks until WHERE.
  void compare(const FusedOp& op, Pass pass) {
    const Xmm a = at(op.operands[1], pass), b = at(op.operands[2], pass);
    const uint8_t predicate = op.opcode == PLUGRAD_OP_EQ   ? kEqual
                              : op.opcode == PLUGRAD_OP_NE ? kNotEqual
                              : op.opcode == PLUGRAD_OP_LT ? kLess
                                                           : kLessEqual;
    if (is_wide_) {
      if (free_masks_.empty()) throw OutOfRegisters();
      masks_[op.operands[0]] = free_masks_.back();
      free_masks_.pop_back();
      return test(Opmask(masks_[op.operands[0]]), a, b, predicate);
    }
    masks_[op.operands[0]] = take();
    test(vec(masks_[op.operands[0]], pass), a, b, predicate);
  }
  void where(const Xmm& d, const FusedOp& op, Pass pass) {
    const int mask = masks_.at(op.operands[1]);
    const Xmm a = at(op.operands[2], pass), b = at(op.operands[3], pass);
    if (is_wide_) return blend(d, Opmask(mask), a, b);
    const Xmm t = vec(mask, pass);
    run_.is_double ? vblendvpd(d, b, a, t) : vblendvps(d, b, a, t);
  }

  // --- Constants, behind the code.

  enum Constant { kSign, kRest, kOne, kMinusOne, kConstants };
  void constant(const Xmm& to, Constant which) { broadcast(to, ptr[rip + constants_[which]]); }
  void bits_of(const Xmm& d, const Xmm& a, Constant bits, bool flip) {
    const Xmm t = vec(temporary(0), d.isXMM() ? Pass::rest : Pass::vectors);
    constant(t, bits);
    if (is_wide_) {
      const Zmm to(d.getIdx()), x(a.getIdx()), y(t.getIdx());
      return flip ? vpxorq(to, x, y) : vpandq(to, x, y);
    }
    flip ? vxorps(d, a, t) : vandps(d, a, t);
  }
  void place_constants() {
    align(8);
    const uint64_t wide[] = {uint64_t{1} << 63, ~(uint64_t{1} << 63), 0x3ff0000000000000, 0xbff0000000000000};
    const uint32_t narrow[] = {uint32_t{1} << 31, ~(uint32_t{1} << 31), 0x3f800000, 0xbf800000};
    for (int i = 0; i < kConstants; ++i) {
      L(constants_[i]);
      run_.is_double ? dq(wide[i]) : dd(narrow[i]);
    }
  }

  const FusedRun& run_;
  const bool is_wide_;  // AVX-512
  const FarOperands& far_;
  std::vector<int> free_, free_masks_;
  std::map<uint16_t, int> where_, hoisted_, masks_;  // registers by value
  Label constants_[kConstants];
};
}  // namespace

FusedCode compile(const FusedRun& run, int vector_bytes, const FarOperands& far) {
  if (!vector_bytes) return {};
  try {
    const auto made = std::make_shared<Generator>(run, vector_bytes == 64, far);
    return {made, made->getCode<RowFunction>()};
  } catch (const OutOfRegisters&) {
    return {};
  } catch (const Xbyak::Error&) {  // the system forbids code made at run time
    return {};
  }
}
#else
FusedCode compile(const FusedRun&, int, const FarOperands&) { return {}; }
#endif

}  // namespace plugrad::cpu
