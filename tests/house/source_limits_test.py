"""The test of the limits can fail: it reports each fault planted here, and nothing that is within the limits."""
import unittest

import cxx
from source_limits import faults

BODY = "".join(f"  work({i});\n" for i in range(50))
SHORT = "int one() { return 1; }\n" * 20

# Source text, and the name and length of each function in it.
FUNCTIONS = [
    ("int f() { return 1; }", [("f", 1)]),
    ("int f();\nextern int x;\nint g() {\n}\n", [("g", 2)]),
    ("namespace a::b {\nnamespace {\nvoid f() {\n\n}\n}\n}", [("f", 3)]),
    ('extern "C" {\nvoid f() {\n}\n}\nextern "C" void g() {}', [("f", 2), ("g", 1)]),
    ("template <class T, int N = (1 > 0)>\nT f(T x) {\n  return x;\n}", [("f", 4)]),
    ("template <class T>\n  requires Number<T>\nT f(T x) requires(sizeof(T) > 4) {\n}", [("f", 4)]),
    ("template <class T>\n  requires requires(T t) { t.f(); } && requires { T(); }\nvoid f(T t) {\n}", [("f", 4)]),
    ("struct A : B<int> {\n  A(int x) : B{x}, b_(x), c_{x, {1}} {\n    f();\n  }\n  int b_{0};\n};", [("A", 3)]),
    ("A::A(int x)\n    : x_(x) {}\nA::~A() { f(); }", [("A", 2), ("A", 1)]),
    ("bool operator==(const A& a, const A& b) {\n}\nA& operator=(const A&) = default;\nint operator()(int x) const {\n}",
     [("operator", 2), ("operator", 2)]),
    ("auto f() -> std::vector<int> {\n}\nint g() const noexcept override {\n}\nint& h() & {\n}",
     [("f", 2), ("g", 2), ("h", 2)]),
    ("void f() {\n  auto g = [&](int x) {\n    return x;\n  };\n}", [("f", 5)]),
    ("constexpr Row kRows[] = {\n  {1, [](int x) {\n    return x;\n  }},\n  {2, nullptr},\n};", [("lambda", 3)]),
    ("const auto square = [](int x) { return x * x; };\nint table[] = {1, 2};\nstd::atomic<int> count{0};", [("lambda", 1)]),
    ("enum class Op : int { A = 1, B = A + (2) };\nclass PLUGRAD_API X;\nunion U {\n  int i;\n};", []),
    ("struct S* f(struct S* s) {\n}\nstruct S s = {1, 2};\nstruct S t{f(0)};", [("f", 2)]),
    ('PLUGRAD_EXPORT_BACKEND(Npu, "npu")\nvoid f() {\n}', [("f", 2)]),
    ("TEST(Shape, IsLong) {\n}\n", [("TEST", 2)]),
    ("__global__ void __launch_bounds__(256) kernel(int n) {\n}", [("kernel", 2)]),
    ('// void f() {\nconst char* s = "}{"; char c = \'{\'; auto r = R"(\n{)";\nint f() {\n}', [("f", 2)]),
    ("#define LOOP(x) for (;;) {\n#if A\nvoid f(int x) {\n#else\nvoid f() {\n#endif\n}\nint g() { return 1'000; }",
     [("f", 5), ("g", 1)]),
    ("class A {\n public:\n  A() = default;\n private:\n  int get() const { return x; }\n  int x = f({1});\n};",
     [("get", 1)]),
    ("void f(std::vector<int> x = {}, int y = 2) {\n}", [("f", 2)]),
    ("void f() try {\n} catch (...) {\n}", [("f", 3)]),
]

CASTS = ["int(x)", "double(f(x))", "uint8_t(x + 1)", "size_t(-n)", "std::size_t(a[i])", "bool(p)", "float(double(x))",
         "DType(code)",
         "plugrad::Op(7 + x)", "(int)x", "(float)f(x)", "(std::size_t)-n", "unsigned(c) << 8", "T(x)", "T(g<int, 2>(x))",
         "char('a' + i)",
         "T(INFINITY)",
         "plugrad_status(x)", "Index(x)", "int(1) + int(x)"]
NO_CASTS = ["static_cast<int>(x)", "int{x}", "T(0)", "T(-1.5)", "uint64_t(1) << 40", "int()", "x.size_t(y)", "sizeof(int)",
            "std::function<double(double)>(f)", "int (*pointer)(int)", "T (&array)[4]", "R (Owner::*method)(int)",
            "new int(x)",
            "[](int) { return 1; }", "f<float>(x)", "operator bool() const", "(void)x", "x.float(y)", "T(a, b)",
            "new (p) T(x)", "T(f<int>(x), {1})",
            "void g(int, T)",
            "reinterpret_cast<uintptr_t>(p)", '"int(x)"', "/* int(x) */ 1", "Kind(x)", "char(true)"]
CONTRACT = ("sdk/include/abi.h",
            "typedef int32_t plugrad_status;\nenum class DType { f32 };\nenum class Op { ADD };\nenum Kind { a };\n")


def of(name, text):
    return faults({name: text})


class Functions(unittest.TestCase):
    def test_functions_are_found_with_their_lengths(self):
        for text, expected in FUNCTIONS:
            with self.subTest(text=text):
                self.assertEqual([(each.name, each.lines) for each in cxx.functions(text)], expected)

    def test_the_line_of_a_function_is_where_its_declaration_begins(self):
        self.assertEqual([each.line for each in cxx.functions("\nint x;\n\ntemplate <class T>\nT f() {\n}\n")], [4])


class Limits(unittest.TestCase):
    def test_a_long_function_is_found(self):
        for name in ("core/a.cpp", "sdk/include/plugrad/a.hpp", "backends/cuda/a.cu", "plugins/c11/a.c", "python/a.cpp"):
            with self.subTest(name=name):
                self.assertEqual(of(name, SHORT + f"void f() {{\n{BODY}}}\n"), [f"{name}:21: f has 52 lines; at most 40"])
        self.assertEqual(of("tests/core/a_test.cpp", f"TEST(A, B) {{\n{BODY}}}\n"), [])
        body = "def f():\n" + "    work()\n" * 41
        self.assertEqual(of("python/plugrad/a.py", "def g(): pass\n" * 9 + body)[0],
                         "python/plugrad/a.py:10: f has 42 lines; at most 40")

    def test_many_functions_of_middling_length_are_found(self):
        middling = "void f() {\n" + "  work();\n" * 15 + "}\n"
        self.assertEqual(of("core/a.cpp", SHORT + middling), [])
        self.assertEqual(of("core/a.cpp", SHORT + 3 * middling), ["one function in ten has 17 lines or more; at most 15"])

    def test_a_long_line_is_found(self):
        for name in ("core/a.cpp", "tests/a.py", "CMakeLists.txt", "cmake/a.cmake", "scripts/a.sh",
                     "sdk/include/plugrad/sdk/ops.def"):
            with self.subTest(name=name):
                self.assertEqual(of(name, "#" + 124 * "x" + "\n"), [])
                self.assertEqual(of(name, "\n#" + 125 * "x" + "\n"), [f"{name}:2: 126 columns; at most 125"])
        self.assertEqual(of("sdk/include/plugrad/sdk/ops.def", f"PLUGRAD_OP({200 * 'x'})\n"), [])

    def test_a_long_file_is_found(self):
        for name, limit in (("core/a.cpp", 400), ("tests/a.py", 400), ("backends/cpu/a.cpp", 600)):
            with self.subTest(name=name):
                self.assertEqual(of(name, limit * "\n"), [])
                self.assertEqual(len(of(name, (limit + 1) * "\n")), 1)
        self.assertEqual(of("sdk/include/a.hpp", 1000 * "\n"), [])


class Casts(unittest.TestCase):
    def faults_of(self, expression, name="tests/core/a.cpp"):
        text = f"using Index = int64_t;\nstruct Kind {{}};\ntemplate <class T> void f() {{\n  return {expression};\n}}\n"
        return faults({CONTRACT[0]: CONTRACT[1], name: text})

    def test_casts_that_are_not_static_casts_are_found(self):
        for expression in CASTS:
            with self.subTest(expression=expression):
                found = self.faults_of(expression)
                self.assertTrue(found and found[0].startswith("tests/core/a.cpp:4: "), found)
        self.assertEqual(len(self.faults_of("float(double(x))")), 2)
        self.assertEqual(len(self.faults_of("int(x)", "backends/cuda/a.cu")), 1)
        self.assertEqual(len(of("core/a.hpp", "#define WIDE(x) int64_t(x)\n")), 1)

    def test_what_is_no_cast_passes(self):
        for expression in NO_CASTS:
            with self.subTest(expression=expression):
                self.assertEqual(self.faults_of(expression), [])
        self.assertEqual(self.faults_of("(int)x", "plugins/c11/a.c"), [])


if __name__ == "__main__":
    unittest.main()
