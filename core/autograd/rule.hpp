// How an op states its gradients: next to the forward function, as tensor expressions.
//
//   static constexpr auto kRule =
//       rule("*", gradient<kInput1>([](const Tensor& grad, const Tensor& b) { return mul(grad, b); }),
//            gradient<kInput0>([](const Tensor& grad, const Tensor& a) { return mul(grad, a); }));
//   return differentiable(kRule, product, a, b);
//
// There is one gradient for each operand. It lists the values it uses and receives only these, in the same order: a function
// with different parameters does not compile. record saves only the values for the gradients.
#pragma once
#include <core/autograd/node.hpp>

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace plugrad {
namespace detail {

template <class Member> struct LastParameter;
template <class Object, class... Parameters> struct LastParameter<Tensor (Object::*)(Parameters...) const> {
  using type = std::remove_cvref_t<std::tuple_element_t<sizeof...(Parameters) - 1, std::tuple<Parameters...>>>;
};

template <Use kUse, class Kept> [[gnu::always_inline]] inline decltype(auto) used(const Saved& saved) {
  if constexpr (kUse == kInput0) return saved.input(0);
  else if constexpr (kUse == kInput1) return saved.input(1);
  else if constexpr (kUse == kInput2) return saved.input(2);
  else if constexpr (kUse == kOutput) return saved.output();
  else if constexpr (kUse == kShape) return saved.shape();
  else if constexpr (kUse == kDType) return saved.dtype();
  else if constexpr (kUse == kPosition) return saved.position();
  else if constexpr (kUse == kSum) return saved.sum();
  else return saved.template payload<Kept>();
}

// The type of a function's last parameter if the function uses the payload, else void.
template <class Function, unsigned kUses> struct KeptBy {
  using type = void;
};
template <class Function, unsigned kUses>
  requires(static_cast<bool>(kUses& kPayload))
struct KeptBy<Function, kUses> : LastParameter<decltype(&Function::operator())> {};

template <class... Kept> struct OneKept {
  using type = void;
};
template <class First, class... Rest> struct OneKept<First, Rest...> {
  using type = First;
  static_assert(((std::is_void_v<Rest> || std::is_same_v<First, Rest>) && ...), "the gradients of a rule share one payload");
};
template <class... Rest> struct OneKept<void, Rest...> : OneKept<Rest...> {};

}  // namespace detail

// The gradient of one operand. Kept: the type of its payload, or void.
template <class Kept, unsigned kUses> struct Gradient {
  Vjp vjp;
};

// A rule with its payload's type, and all uses of its gradients.
template <class Kept, unsigned kUses> struct RuleOf : Rule {};

// function: a lambda without captures. It takes the incoming gradient and then the values named by kUses, kPayload last.
template <Use... kUses, class Function> constexpr auto gradient(Function) {
  constexpr unsigned kAll = (0u | ... | kUses);
  using Kept = typename detail::KeptBy<Function, kAll>::type;
  static_assert(std::is_empty_v<Function>, "a gradient captures nothing: what it needs is saved or is its payload");
  static_assert(std::is_invocable_v<Function, const Tensor&, decltype(detail::used<kUses, Kept>(std::declval<Saved>()))...>,
                "the parameters behind grad are the uses, in their order");
  return Gradient<Kept, kAll>{{[](const Tensor& grad, const Saved& saved) -> Tensor {
                                 return Function{}(grad, detail::used<kUses, Kept>(saved)...);
                               },
                               kAll}};
}

// For an operand without a gradient.
inline constexpr Gradient<void, 0> kNoGradient{};

template <class... Kept, unsigned... kUses> constexpr auto rule(const char* name, Gradient<Kept, kUses>... gradients) {
  static_assert(sizeof...(gradients) <= kOperands);
  static_assert(sizeof...(gradients) < kOperands || !((0u | ... | kUses) & kOutput), "no place is left to save the output");
  return RuleOf<typename detail::OneKept<Kept...>::type, (0u | ... | kUses)>{{name, {gradients.vjp...}}};
}

// States that the gradients of a rule hold for complex numbers as they are: the function has no complex derivative.
template <class Kept, unsigned kUses> constexpr auto for_complex(RuleOf<Kept, kUses> rule) {
  rule.for_complex = true;
  return rule;
}

// The rule of an op of any number of operands: one gradient serves all of them.
template <class Kept, unsigned kUses> constexpr auto rule_of_many(const char* name, Gradient<Kept, kUses> gradient) {
  static_assert(!(kUses & kSavedTensors), "an op of many operands saves no tensors");
  return RuleOf<Kept, kUses>{{name, {gradient.vjp, gradient.vjp, gradient.vjp}}};
}

// Records `out` as the result of the rule's op on the operands, if an operand is in a graph and recording is on. Copies
// nothing otherwise.
template <unsigned kUses, class... Operands>
[[gnu::always_inline]] inline Tensor differentiable(const RuleOf<void, kUses>& rule, Tensor out,
                                                    const Operands&... operands) {
  static_assert(!((kUses & kInputs) >> sizeof...(Operands)), "an input that is no operand");
  if ((... || static_cast<bool>(operands.impl().node)) && recording()) {
    const Tensor* const all[] = {&operands...};
    record(rule, out, all, sizeof...(operands));
  }
  return out;
}
// As above, with a payload for the gradients.
template <class Kept, unsigned kUses, class... Operands>
  requires(!std::is_void_v<Kept>)
[[gnu::always_inline]] inline Tensor differentiable(const RuleOf<Kept, kUses>& rule,
                                                    const std::type_identity_t<Kept>& payload, Tensor out,
                                                    const Operands&... operands) {
  static_assert(!((kUses & kInputs) >> sizeof...(Operands)), "an input that is no operand");
  if ((... || static_cast<bool>(operands.impl().node)) && recording()) {
    const Tensor* const all[] = {&operands...};
    record(rule, out, all, sizeof...(operands)).payload = make_payload(payload);
  }
  return out;
}

// For ops of any number of operands.
bool any_requires_grad(const std::vector<Tensor>& operands);
template <class Kept, unsigned kUses>
void record_many(const RuleOf<Kept, kUses>& rule, const Tensor& out, const std::vector<Tensor>& operands, Kept payload) {
  if (!recording() || !any_requires_grad(operands)) return;
  record_all(rule, out, operands).payload = make_payload(std::move(payload));
}

}  // namespace plugrad
