"""Code that must not compile, and the compiler's message: a gradient whose parameters differ from the uses that it lists,
and programs with flags that the library does not support.

rules_that_do_not_compile.py ROOT    with the compiler in CXX
"""
import os
import subprocess
import sys

MUL = "{ return mul(grad, x); }"
# A declaration, and a part of the compiler's message, or None if the declaration compiles.
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


# Flags of a program, and the only error that they cause.
FLAGS = [
    (["-std=c++17"], "compile with -std=c++20"),
    (["-std=c++20", "-D_GLIBCXX_USE_CXX11_ABI=0"], "compile without -D_GLIBCXX_USE_CXX11_ABI=0"),
    (["-std=c++20", "-Wuseless-cast", "-Wold-style-cast", "-Wshadow", "-Werror"], None),
]


def compiled(root, source, *flags):
    command = [os.environ.get("CXX", "c++"), *flags, "-fsyntax-only", "-x", "c++", f"-I{root}", f"-I{root}/core/include",
               f"-I{root}/sdk/include", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


def compile_case(root, text):
    source = ("#include <core/autograd/rule.hpp>\nnamespace plugrad {\nTensor mul(const Tensor&, const Tensor&);\n" + text +
              "\n}\n")
    return compiled(root, source, "-std=c++20")


def flags_not_as_expected(root):
    """Returns how many of FLAGS cause another error, or more than one error."""
    failed = 0
    for flags, reason in FLAGS:
        done = compiled(root, "#include <plugrad/plugrad.hpp>\nint main() {}\n", *flags)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        if (reason is None and errors) or (reason and (len(errors) != 1 or reason not in errors[0])):
            failed += 1
            print(f"{flags}\n  expected: {reason or 'it compiles'}\n  got: {errors[:5] or 'it compiles'}")
    return failed


def main(root):
    failed = 0
    for text, reason in CASES:
        done = compile_case(root, text)
        if reason is None and done.returncode or reason is not None and (not done.returncode or reason not in done.stderr):
            failed += 1
            print(f"{text}\n  expected: {reason or 'it compiles'}\n  got: {done.stderr[:2000] or 'it compiles'}")
    failed += flags_not_as_expected(root)
    print(f"{len(CASES)} declarations and {len(FLAGS)} sets of flags, {failed} not as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
