"""A gradient whose parameters differ from the uses it lists does not compile, and the compiler says why.

rules_that_do_not_compile.py ROOT    with the compiler in CXX
"""
import os
import subprocess
import sys

MUL = "{ return mul(grad, x); }"
# A declaration, and a part of the compiler's message, or None if it compiles.
CASES = [
    ("constexpr auto g = gradient<kInput0>([](const Tensor& grad, const Tensor& x) " + MUL + ");", None),
    ("constexpr auto g = gradient([](const Tensor& grad, const Tensor& x) " + MUL + ");",
     "parameters behind grad are the uses"),
    ("constexpr auto g = gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& x) " + MUL + ");",
     "parameters behind grad are the uses"),
    ("Tensor f(const Tensor& a, const Tensor& b) { constexpr auto g = gradient([&](const Tensor& grad) { "
     "return mul(grad, b); }); return a; }", "captures nothing"),
    ("Tensor f(const Tensor& a) { static constexpr auto kRule = rule(\"f\", gradient<kInput1>([](const Tensor& grad, "
     "const Tensor& x) " + MUL + ")); return differentiable(kRule, a, a); }", "an input that is no operand"),
    ("Tensor f(const Tensor& a) { static constexpr auto kRule = rule(\"f\", gradient<kPayload>([](const Tensor& grad, int) "
     "{ return grad; })); return differentiable(kRule, a, a); }", "no matching function"),
    ("constexpr auto r = rule(\"f\", gradient<kPayload>([](const Tensor& grad, int) { return grad; }), "
     "gradient<kPayload>([](const Tensor& grad, double) { return grad; }));", "share one payload"),
    ("constexpr auto r = rule(\"f\", gradient<kOutput>([](const Tensor& grad, const Tensor& x) " + MUL + "), kNoGradient, "
     "kNoGradient);", "no place is left to save the output"),
    ("constexpr auto r = rule(\"f\", gradient<kOutput>([](const Tensor& grad, const Tensor& x) " + MUL + "), kNoGradient);",
     None),
]


def compile_case(root, text):
    source = ("#include <core/autograd/rule.hpp>\nnamespace plugrad {\nTensor mul(const Tensor&, const Tensor&);\n" + text +
              "\n}\n")
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-x", "c++", f"-I{root}",
               f"-I{root}/core/include", f"-I{root}/sdk/include", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


def main(root):
    failed = 0
    for text, reason in CASES:
        done = compile_case(root, text)
        if reason is None and done.returncode or reason is not None and (not done.returncode or reason not in done.stderr):
            failed += 1
            print(f"{text}\n  expected: {reason or 'it compiles'}\n  got: {done.stderr[:2000] or 'it compiles'}")
    print(f"{len(CASES)} declarations, {failed} not as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
