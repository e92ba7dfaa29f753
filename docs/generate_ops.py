"""Writes docs/ops.md: every function of the core's op headers, and what proves what the page says of it.

generate_ops.py ROOT           writes ROOT/docs/ops.md
generate_ops.py ROOT --check   fails if it would write something else
generate_ops.py ROOT --kernels NAME FILE CONFORM   writes what a plugin runs into docs/kernels.json; with --check compares

The dtypes are those of python/tests/samples, whose tests run each op in all of them and see that others are refused. An op
has a gradient if it has rows in tests/core/*rows.cpp, which compare the first and the second derivative with differences.
"""
import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

TABLE = (Path(__file__).resolve().parents[1] / "sdk/include/plugrad/sdk/dtypes.def").read_text()
DTYPES = re.findall(r'^PLUGRAD_DTYPE\(\w+, *\d+, \w+, *"(\w+)", *\w+, *(\w+)', TABLE, re.MULTILINE)
KINDS = {word: {name for name, kind in DTYPES if kind == of}
         for word, of in (("floating", "floating"), ("integers", "integer"), ("bool", "boolean"))}
# The op of ops.def behind a function of another name.
OPS = {"scaled_dot_product_attention": "ATTENTION", "group_norm": "BATCH_NORM", "instance_norm": "BATCH_NORM",
       "linear": "MATMUL_ADD",
       "clone": "COPY", "contiguous": "COPY", "full": "FILL", "arange": "IOTA", "rand": "UNIFORM", "randn": "NORMAL",
       "gt": "LT", "ge": "LE", "floor_divide": "QUOTIENT",
       **{f"conv{n}d": "CONVOLUTION" for n in (1, 2, 3)},
       **{f"conv_transpose{n}d": "CONVOLUTION_INPUT_GRAD" for n in (1, 2, 3)},
       **{f"max_pool{n}d{end}": "MAX_POOL" for n in (1, 2, 3) for end in ("", "_with_indices")}}
BACKENDS = ("reference", "cpu", "cuda", "vulkan")


def module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def headers(root, generate):
    """(title, preamble, functions) for each header."""
    for path in sorted((root / "core/include/plugrad/ops").glob("*.hpp")):
        if path.stem in generate.HEADERS["left_out"]:
            continue
        functions = {}
        generate.read_header(path, functions)
        preamble = next(iter(functions.values())).header if functions else ""
        yield path.stem, preamble, list(functions.values())


def gradient_rows(root, files="*rows.cpp"):
    """The number of rows of each function."""
    found = {}
    for path in sorted((root / "tests/core").glob(files)):
        text = path.read_text(encoding="utf-8")
        named = dict(re.findall(r'constexpr const char\* (\w+) = "(\w+)";', text))
        for name in re.findall(r'\{\s*("\w+"|k\w+),\s*"\w+",\s*(?:\{|k[A-Z])', text):
            name = named.get(name, name.strip('"'))
            found[name] = found.get(name, 0) + 1
    return found


def sampled(root):
    """The dtypes of each op in the samples, and the reasons of those without a row."""
    sys.path.insert(0, str(root / "python/tests"))
    import samples
    found = {}
    for row in samples.ROWS:
        found.setdefault(row.op, set()).update(row.dtypes)
    return found, samples.WITHOUT


def accuracy(root):
    """The bounds of each function in ulp: the value's and the derivative's, the largest of its rows."""
    found = {}
    bounds = module(root / "python/tests/accuracy/bounds.py", "bounds")
    for label, pair in (bounds.BOUNDS | bounds.ROW_BOUNDS).items():
        known = found.setdefault(label.split()[0], pair)
        found[label.split()[0]] = tuple(map(max, known, pair))
    return {name: ", ".join(f"{bound:g}" for bound in pair) for name, pair in found.items()}


def dtypes_text(dtypes):
    if dtypes is None:
        return ""
    rest, words = set(dtypes), []
    for word, kind in KINDS.items():
        if kind <= rest:
            words.append(word)
            rest -= kind
    return "all" if len(words) == len(KINDS) else ", ".join(words + sorted(rest))


def first_sentence(text):
    return re.split(r"(?<=[.:;])\s", text, maxsplit=1)[0].rstrip(":;") if text else ""


def signature(function):
    """In Python, of the first overload."""
    parts = []
    for _, name, default in function.overloads[0][1]:
        name = function.python_name(name)
        value = {"{}": "None", "std::nullopt": "None", "true": "True", "false": "False"}.get(default, default)
        parts.append(name if default is None else f"{name}={value.split('::')[-1].replace('{', '').replace('}', '')}")
    return f"{function.python}({', '.join(parts)})"


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def natively(op, kernels):
    """Which backends have a kernel for an op of the table, with its dtypes."""
    alike = {}
    for name in BACKENDS:
        if dtypes := kernels.get(name, {}).get(op):
            alike.setdefault(" ".join(dtypes), []).append(name)
    return f"{op}: " + ("; ".join(f"{', '.join(names)} ({dtypes})" for dtypes, names in alike.items()) or "none")


def gradient_text(rows):
    return f"first and second ({rows} row{'s' * (rows > 1)})" if rows else "none"


def linear_algebra(root):
    """The functions of plugrad.linalg, which are written in Python around those of the core."""
    return python_module(root, "linalg", LINALG, gradient_rows(root, "linalg_rows.cpp"), without=("matrix_rank",))


def python_module(root, name, preamble, rows, without):
    """without: the functions that have no gradient."""
    tree = ast.parse((root / f"python/plugrad/{name}.py").read_text(encoding="utf-8"))
    lines = [preamble.strip(), "", "| function | what | gradient |", "|---|---|---|"]
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            for argument in each.args.args + each.args.kwonlyargs:
                argument.annotation = None
            what = first_sentence(" ".join(ast.get_docstring(each).split()))
            called = f"{name}.{each.name}({ast.unparse(each.args)})"
            gradient = gradient_text(rows[each.name]) if each.name in rows else "of the functions that it calls"
            gradient = "none" if each.name in without else gradient
            lines.append(f"| `{cell(called)}` | {cell(what)} | {gradient} |")
    return lines + [""]


def transforms(root):
    """The functions of plugrad.fft, which are written in Python around those of the core."""
    return python_module(root, "fft", FFT, gradient_rows(root, "complex_rows.cpp"), without=("fftfreq", "rfftfreq"))


def line(function, facts):
    name, python = function.name, function.python
    op = OPS.get(name, name.upper())
    own = natively(op, facts["kernels"]) if op in facts["ops"] else "composed"
    gradient = gradient_text(facts["rows"].get(name, 0))
    text = first_sentence(facts["definitions"].get(name) or function.notes[0])
    dtypes = dtypes_text(facts["dtypes"].get(python)) or ("not sampled" if python not in facts["dtypes"] else "")
    ulp = facts["ulp"].get(python, "")
    return f"| `{cell(signature(function))}` | {cell(text)} | {dtypes} | {gradient} | {ulp} | {own} |"


def page(root):
    generate = module(root / "python/generate.py", "generate")
    table = root / "sdk/include/plugrad/sdk/ops.def"
    dtypes, without = sampled(root)
    kernels = json.loads((root / "docs/kernels.json").read_text(encoding="utf-8"))
    facts = {"rows": gradient_rows(root), "dtypes": dtypes, "kernels": kernels, "ulp": accuracy(root),
             "ops": set(re.findall(r"^PLUGRAD_OP\((\w+)", table.read_text(encoding="utf-8"), re.MULTILINE)),
             "definitions": generate.definitions(table)}
    lines = [PREFACE.strip(), ""]
    for title, preamble, functions in headers(root, generate):
        lines += [f"## {title}", "", preamble, "", "| function | what | dtypes | gradient | ulp | native or composed |",
                  "|---|---|---|---|---|---|"]
        lines += [line(function, facts) for function in functions] + [""]
    lines += linear_algebra(root) + transforms(root)
    lines += ["## Without samples", "", "| function | why |", "|---|---|"]
    lines += [f"| `{name}` | {reason} |" for name, reason in sorted(without.items())]
    return "\n".join(lines) + "\n"


PREFACE = """
# The functions

`docs/generate_ops.py` writes this page from the headers in `core/include/plugrad/ops`; a test fails if it is out of date.
It shows each function as Python has it; C++ has the same ones in the namespace `plugrad`.

- dtypes: those in which `python/tests/samples` runs the function beside NumPy; the tests see that it refuses the others.
- gradient: how many rows of `tests/core/*rows.cpp` compare the first and the second derivative with differences.
- ulp: how far the value and the first derivative may be from the exact results in f64 and f32, over the whole range;
  [accuracy.md](accuracy.md) names the worst places.
- native or composed: functions that are composed of others run on every device. For an op of the table `ops.def`, the
  backends that have a kernel of their own, with its dtypes (`plugrad-conform --kernels`); elsewhere the core converts the
  operands to a wider dtype or composes the op.
"""


LINALG = """
## linalg

Linear algebra of small matrices, in f32 and f64, for linear equations, determinants, LU and Cholesky also in c64 and c128;
integers become f32. `python/tests/test_linalg.py` compares it with NumPy.
Factors are computed by plugins with the extension of `plugrad/sdk/linalg.h`, which `cpu` has; the policy PLUGRAD_FALLBACK
lets tensors of other devices go through the host. What needs no factors is composed.
"""


FFT = """
## fft

Fourier transforms by the names of NumPy's and PyTorch's fft, in f32, f64, c64 and c128; other dtypes are cast.
`python/tests/test_fft.py` compares them with NumPy. They are the op FFT, for which `cpu` has a kernel; elsewhere they are
products with matrices.
"""


def update(path, text, check):
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print(f"{path} is out of date: run docs/generate_ops.py (its first lines say how)", file=sys.stderr)
        return 1
    path.write_text(text, encoding="utf-8")
    return 0


def kernels_text(root, name, plugin, conform):
    """docs/kernels.json with what this plugin lists."""
    path = root / "docs/kernels.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    done = subprocess.run([conform, "--kernels", plugin], capture_output=True, text=True, check=True)
    if done.stdout.startswith("there is no device"):
        print(f"skipped: {done.stdout.strip()}")
        sys.exit(77)
    rows = (row.split() for row in done.stdout.splitlines())
    known[name] = {op: dtypes for op, *dtypes in rows if dtypes}
    parts = []
    for backend, table in sorted(known.items()):
        listed = ",\n".join(f'    "{op}": {json.dumps(dtypes)}' for op, dtypes in table.items())
        parts.append(f'  "{backend}": {{\n{listed}\n  }}')
    return path, "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments):
    check = "--check" in arguments
    root, *more = [each for each in arguments if each != "--check"]
    root = Path(root).resolve()
    if more and more[0] == "--kernels":
        return update(*kernels_text(root, *more[1:]), check)
    return update(root / "docs/ops.md", page(root), check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
