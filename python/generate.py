"""Writes the bindings of the module's ops from the core's headers. Each function declared in core/include/plugrad/ops
becomes a function of the package, and a method if its first parameter is the tensor that it works on. The docstring joins
the definition in sdk's ops.def and the comment at the declaration. functions.toml lists additions of Python's functions to
the declarations. A declaration that this script cannot translate is an error.

generate.py ROOT OUT ...   writes C++ into the files OUT, which have about equal lengths and compile in parallel
"""
import re
import sys
import tomllib
from pathlib import Path

TABLE = tomllib.loads(Path(__file__).with_name("functions.toml").read_text(encoding="utf-8"))
ROWS, HEADERS = TABLE["functions"], TABLE["headers"]
COLUMNS = {"python", "also", "renamed", "accepts", "by_name_from", "one_by_one", "or_of_two", "own_axis", "own_method"}
IN_PLACE, DRAWS = (set(TABLE[key].split()) for key in ("in_place", "draws"))
PARAMETERS = {"const Tensor&", "Number", "const Shape&", "int", "int64_t", "bool", "double", "DType", "Device", "Reduction",
              "Approximation", "Interpolation", "Side", "std::optional<Number>", "std::optional<double>",
              "std::optional<int64_t>", "std::optional<DType>", "const std::vector<Tensor>&", "const std::vector<int64_t>&",
              "const std::vector<double>&", "const std::string&", "GridIndexing", "PadMode", "ScatterReduction",
              "std::optional<RoundingMode>", "BagMode", "std::optional<bool>", "ConvolutionPadding", "Resampling",
              "GridPadding"}
RESULTS = "Tensor|Shape|std::vector<Tensor>|ValuesIndices|MinMax|Quantized|Unique|Histogram|bool|void"
# Defaults that become None in Python, because the default dtype and device are known only when the function is called.
NONE = {"std::nullopt", "DType::f32", "default_device()"}
# Parameters and defaults for which None means no numbers.
NONE_AS_EMPTY = {("const Shape&", "{}"), ("const std::vector<double>&", "{}")}


def is_factory(function, overload):
    """Returns whether the function makes a new tensor and so takes requires_grad."""
    result, parameters = overload
    return result == "Tensor" and function.name != "to" and (
        function.name.endswith("_like") or any(kind == "Device" for kind, _, _ in parameters))


class Function:
    def __init__(self, name):
        self.name, self.notes, self.overloads, self.header, self.not_methods = name, [], [], "", []
        self.row = ROWS.get(name, {})
        self.python = self.row.get("python", name)

    def python_name(self, parameter):
        return self.row.get("renamed", {}).get(parameter, TABLE["renamed"].get(parameter, parameter))

    def parameters(self):
        """Returns the names of all parameters in C++."""
        return {name for _, taken in self.overloads for _, name, _ in taken}

    def methods(self):
        """Returns the overloads that are also methods."""
        return [each for each in self.overloads if each not in self.not_methods and each[1]
                and each[1][0][0] == "const Tensor&" and each[1][0][1] not in HEADERS["not_self"]]

    def bound_methods(self):
        """Returns the overloads for which this script binds methods."""
        return [] if self.row.get("own_method") else self.methods()

    def functions(self):
        """Returns all overloads in the order in which Python tries them. Overloads that are not methods come first, such as
        unfold of images."""
        return self.not_methods + [each for each in self.overloads if each not in self.not_methods]

    def note(self, text):
        if text and text not in self.notes:
            self.notes.append(text)


def split_parameters(text):
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<({") - (c in ">)}")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]] if part.strip()]


def value_text(default):
    """Returns the C++ expression of a default for nanobind, or None for an unknown form."""
    if default == "{}":
        return "nb::tuple()"
    if numbers := re.fullmatch(r"\{(-?\d+(?:, -?\d+)*)\}", default):
        return f"nb::make_tuple({numbers[1]})" if "," in numbers[1] else numbers[1]
    if choice := re.fullmatch(r"[A-Z]\w+::(\w+)", default):
        return f'"{choice[1]}"'
    return default if re.fullmatch(r"true|false|-?\d+(\.\d+)?(e-?\d+)?", default) else None


def parameter(text, where):
    """Returns (type, name, default or None)."""
    declared, _, default = (part.strip() for part in text.partition("="))
    match = re.fullmatch(r"(.*[&\s])\s*(\w+)", declared)
    if not match or match.group(1).strip() not in PARAMETERS:
        sys.exit(f"{where}: generate.py cannot pass the parameter '{text}'; it knows {', '.join(sorted(PARAMETERS))}")
    if default and default not in NONE and not value_text(default):
        sys.exit(f"{where}: generate.py does not know the default '{default}'")
    return match.group(1).strip(), match.group(2), default or None


def statements(text):
    """Yields (comment above, declaration, comment beside) for each PLUGRAD_API function, in order. A comment belongs to the
    declaration below it, and to the following declarations whose names are equal except for 1d, 2d or 3d."""
    comment, fresh, pending, owner = [], True, "", None
    for line in text.splitlines():
        bare = line.strip()
        if pending or bare.startswith("PLUGRAD_API"):
            code, _, beside = bare.partition("//")
            pending = f"{pending} {code.strip()}".strip()
            fresh = True
            if pending.endswith(";"):
                name = re.sub(r"[123]d", "", re.search(r"(\w+)\(", pending).group(1))
                owner = owner or name
                yield " ".join(comment) if name == owner else "", pending, beside.strip()
                pending = ""
        elif bare.startswith("//"):
            comment, owner = ([] if fresh else comment) + [bare.lstrip("/ ")], None
            fresh = False
        else:  # a blank line, or an enum or another declaration with its own comment
            comment, fresh, owner = [], True, None


def with_defaults(taken, function):
    """Returns the parameters of an overload. An overload with a named padding gets the defaults of the first overload, which
    it cannot have in C++ because calls would be ambiguous."""
    if not any(kind == "ConvolutionPadding" for kind, _, _ in taken):
        return taken
    defaults = {name: default for _, name, default in function.overloads[0][1]}
    return [(kind, name, "ConvolutionPadding::valid" if kind == "ConvolutionPadding" else defaults[name])
            for kind, name, _ in taken]


def read_header(path, functions):
    text = path.read_text(encoding="utf-8")
    preamble = " ".join(line.lstrip("/ ") for line in re.match(r"(//[^\n]*\n)*", text).group().splitlines())
    body = text[text.index("namespace plugrad {"):]
    for comment, code, beside in statements(body):
        match = re.fullmatch(rf"PLUGRAD_API ({RESULTS}) (\w+)\((.*)\);", code)
        if not match:
            sys.exit(f"{path}: generate.py does not understand '{code}'")
        result, name, parameters = match.groups()
        function = functions.setdefault(name, Function(name))
        function.header = preamble
        function.note(comment)
        function.note(beside)
        taken = [parameter(p, f"{path}: {name}") for p in split_parameters(parameters)]
        function.overloads.append((result, with_defaults(taken, function)))
        if path.stem in HEADERS["without_methods"]:
            function.not_methods.append(function.overloads[-1])


def definitions(path):
    """Returns name -> definition for the elementwise, copying and generating ops of ops.def. The definitions of all further
    ops name the operands of kernels, which differ from the parameters."""
    rows = re.findall(r'^PLUGRAD_OP\((\w+),\s*\d+, (?:elementwise|copy|generate),.*, "(.*)"\)$',
                      path.read_text(encoding="utf-8"),
                      re.MULTILINE)
    return {name.lower(): text for name, text in rows}


# Words of the core's comments, and the words of Python's docstrings.
WORDS = [(r"\baxes\b", "dims"), ("an axis", "a dim"), ("axis(?!=)", "dim"), ("undefined tensor", "None"),
         (r"Throws Error \(invalid\)", "Raises ValueError"), (r"Error \(invalid\)", "ValueError"),
         (r"an Error \(index_error\)", "an IndexError")]


def docstring(function, defined):
    parts = [f"Element by element: {defined[function.name]}"] if function.name in defined else []
    parts += function.notes + [function.header]
    for cpp, python in WORDS:
        parts = [re.sub(cpp, python, part) for part in parts]
    return "\n\n".join(sentence(part) for part in parts if part)


def sentence(text):
    """Returns the text with a full stop and a capital, but a variable at the beginning keeps its case."""
    first = text[0].upper() if re.match(r"[a-z]{2,}[ ,.]", text) else text[0]
    return first + text[1:] + ("" if text.endswith((".", ")")) else ".")


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def argument(name, kind, default):
    """Returns the nb::arg of a parameter. A tensor with a default may be None."""
    if default is None and (kind, name) == ("const Tensor&", "min"):  # of clamp, where min may be None if max is given
        return f'nb::arg("{name}").none() = nb::none()'
    if default is None and kind.startswith("std::optional"):
        return f'nb::arg("{name}").none()'
    if default is None:
        return f'nb::arg("{name}")'
    if kind == "const Tensor&" or default == "std::nullopt" or (kind, default) in NONE_AS_EMPTY:
        return f'nb::arg("{name}").none() = nb::none()'
    value = "nb::none()" if default in NONE else value_text(default)
    return f'nb::arg("{name}"){".none()" if kind.startswith("std::optional") else ""} = {value}'


def cast(function, overload, name=None):
    """Returns a C++ expression for the address of the core's function with these parameters."""
    result, parameters = overload
    return f"static_cast<{result} (*)({', '.join(kind for kind, _, _ in parameters)})>(&plugrad::{name or function.name})"


def arguments(function, taken):
    """Returns the parameters of a binding, each after a comma."""
    texts = []
    for kind, name, default in taken:
        if function.row.get("by_name_from") == name:
            texts.append("nb::kw_only()")
        texts.append(argument(function.python_name(name), kind, default))
    return "".join(f", {text}" for text in texts)


def binding(target, function, overload, doc, as_method):
    """Returns the definition with PyTorch's names of parameters; with own_axis, also a definition with `axis`."""
    factory = not as_method and is_factory(function, overload)
    end = ', nb::kw_only(), nb::arg("requires_grad") = false' if factory else ""
    end += f",\n      {literal(doc)}" if doc else ""
    call = f'{"tracked" if factory else "bound"}({cast(function, overload)})'
    taken = arguments(function, overload[1][int(as_method):])
    by_axis = taken.replace('nb::arg("dim")', 'nb::arg("axis")') if function.row.get("own_axis") else taken
    return "".join(f'  {target}.def("{function.python}", {call}{texts});\n'
                   for texts in [f"{taken}{end}", by_axis][:1 + (by_axis != taken)])


def in_place(function, overload):
    """Returns the definition of the method that writes the result into its tensor."""
    if function.name not in IN_PLACE or overload[0] != "Tensor":
        return ""
    name = f"{function.name}_"
    texts = "".join(f", {argument(function.python_name(name), kind, default)}" for kind, name, default in overload[1][1:])
    return (f'  tensor.def("{name}", in_place("{name}", {cast(function, overload)}){texts},\n'
            f'      "The same as {function.name}, in place.");\n')


def other_function(target, function, as_method):
    """Returns the overload for two tensors, element by element: PyTorch's max(x, other)."""
    if "or_of_two" not in function.row:
        return ""
    two = ("Tensor", [("const Tensor&", "x", None), ("const Tensor&", "other", None)])
    texts = "".join(f', nb::arg("{name}")' for _, name, _ in two[1][int(as_method):])
    return f'  {target}.def("{function.python}", bound({cast(function, two, function.row["or_of_two"])}){texts});\n'


def one_by_one(function):
    """Returns the overload that takes tensors one by one. All further parameters are passed by name."""
    if not function.row.get("one_by_one"):
        return ""
    rest = function.overloads[0][1][1:]
    texts = ", nb::kw_only()" * bool(rest) + arguments(function, rest)
    return f'  m.def("{function.name}", spread({cast(function, function.overloads[0])}), nb::arg("tensors"){texts});\n'


def with_indices(function, twin):
    """Returns the overload with return_indices for a function with a twin that returns values and indices."""
    if not twin or twin.overloads[0][1] != function.overloads[0][1]:
        return ""
    casts = f"{cast(function, function.overloads[0])}, {cast(twin, twin.overloads[0])}"
    taken = arguments(function, function.overloads[0][1])
    return f'  m.def("{function.name}", either({casts}){taken}, nb::arg("return_indices") = false);\n'


def further_names(functions):
    """Returns the lines that give functions a second name. They come last, because a later overload replaces the function's
    object."""
    lines = []
    for function in functions:
        for other in function.row.get("also", []):
            names = [("m", other, function.name)] + [("tensor", other, function.name)] * bool(function.methods())
            names += [("tensor", f"{other}_", f"{function.name}_")] * (function.name in IN_PLACE)
            lines += [f'  {target}.attr("{new}") = {target}.attr("{name}");\n' for target, new, name in names]
    return lines


def accepted(function):
    """Returns the further names of a function's parameters: {theirs: ours}."""
    first = {function.overloads[0][1][0][1]} if function.overloads[0][1] else set()
    own = function.row.get("accepts", {})
    found = {}
    for kind, name, _ in (each for _, parameters in function.overloads for each in parameters):
        ours = function.python_name(name)
        general = TABLE["accepts"].get(ours, [])
        if kind in ("const Tensor&", "Number"):
            general = TABLE["accepts_first" if name in first else "accepts_operand"].get(name, general)
        found |= dict.fromkeys(own.get(name, general), ours)
    taken = {function.python_name(name) for name in function.parameters()}
    found = {theirs: ours for theirs, ours in found.items() if theirs not in taken}
    return found | ({"axis": "axis"} if function.row.get("own_axis") else {})


def call_names(functions):
    """Returns C++ for calls.hpp: the further names of parameters, and the names of the functions that draw."""
    general = {theirs: ours for ours in ("dim", "keepdim") for theirs in TABLE["accepts"][ours]}
    rows = {("", theirs): ours for theirs, ours in general.items()}
    for function in functions:
        for theirs, ours in accepted(function).items():
            if general.get(theirs) != ours:
                rows.setdefault((function.python, theirs), ours)
    lines = [f'    {{"{name}", "{theirs}", "{ours}"}},\n' for (name, theirs), ours in rows.items()]
    drawing = ", ".join(f'"{name}"' for name in sorted(DRAWS))
    return (f"std::span<const CallName> call_names() {{\n  static constexpr CallName all[] = {{\n{''.join(lines)}  }};\n"
            f"  return all;\n}}\n\nstd::span<const char* const> drawing_functions() {{\n"
            f"  static constexpr const char* all[] = {{{drawing}}};\n  return all;\n}}\n")


def bindings(function, functions, defined):
    """Returns all definitions of a function and of its methods."""
    doc = docstring(function, defined)
    code = [binding("m", function, overload, doc if i == 0 else "", False)
            for i, overload in enumerate(function.functions())]
    code += [other_function("m", function, False), one_by_one(function)]
    code.append(with_indices(function, functions.get(f"{function.name}_with_indices")))
    for i, overload in enumerate(function.bound_methods()):
        code += [binding("tensor", function, overload, doc if i == 0 else "", True), in_place(function, overload)]
    if function.bound_methods():
        code.append(other_function("tensor", function, True))
    return "".join(code)


def parts_of(texts, count):
    """Returns the texts in order, in `count` lists of about equal length."""
    total, seen, parts = sum(map(len, texts)), 0, [[] for _ in range(count)]
    for text in texts:
        parts[min(count - 1, seen * count // total)].append(text)
        seen += len(text)
    return parts


SIGNATURE = "(nb::module_& m, nb::class_<Tensor>& tensor)"


def written_parts(texts, count, functions):
    """Returns the contents of the files. The first file has the functions that the module calls, with second names last."""
    files = []
    for number, part in enumerate(parts_of(texts, count)):
        files.append(f"void bind_functions_{number}{SIGNATURE} {{\n{''.join(part)}}}\n")
    calls = "".join(f"  bind_functions_{number}(m, tensor);\n" for number in range(count))
    declared = "".join(f"void bind_functions_{number}{SIGNATURE};\n" for number in range(1, count))
    files[0] = (f"{declared}\n{files[0]}\nvoid bind_functions{SIGNATURE} {{\n{calls}}}\n\n"
                f"void bind_further_names{SIGNATURE} {{\n{''.join(further_names(functions))}}}\n\n{call_names(functions)}")
    return [f"#include <python/bound.hpp>\n#include <python/calls.hpp>\n\nnamespace plugrad::python {{\n\n{text}\n"
            "}  // namespace plugrad::python\n" for text in files]


def read_headers(folder):
    """Returns all functions by name, in the order of their bindings."""
    found = {path.stem for path in folder.glob("*.hpp")}
    functions = {}
    for stem in HEADERS["first"] + sorted(found - set(HEADERS["first"]) - set(HEADERS["left_out"])):
        read_header(folder / f"{stem}.hpp", functions)
    return functions


def check_table(functions, headers):
    """Ends the program if the table contains an unknown header, function, column or parameter."""
    wrong = [f"header {name}" for name in [*HEADERS["first"], *HEADERS["left_out"], *HEADERS["without_methods"]]
             if not (headers / f"{name}.hpp").exists()]
    wrong += [f"function {name}" for name in [*sorted(IN_PLACE), *ROWS] if name not in functions]
    for name, row in ROWS.items():
        wrong += [f"column {column} of {name}" for column in row if column not in COLUMNS]
        named = [*row.get("renamed", {}), *row.get("accepts", {}), *filter(None, [row.get("by_name_from")])]
        wrong += [f"parameter {each} of {name}" for each in named
                  if name in functions and each not in functions[name].parameters()]
    if wrong:
        sys.exit(f"functions.toml: unknown: {', '.join(wrong)}")


def main(arguments):
    root, *outs = map(Path, arguments)
    functions = read_headers(root / "core/include/plugrad/ops")
    check_table(functions, root / "core/include/plugrad/ops")
    defined = definitions(root / "sdk/include/plugrad/sdk/ops.def")
    if bare := [name for name, function in functions.items() if not function.notes and name not in defined]:
        sys.exit(f"generate.py: no comment says what these functions do: {', '.join(bare)}")
    texts = [bindings(function, functions, defined) for function in functions.values()]
    for out, text in zip(outs, written_parts(texts, len(outs), list(functions.values()))):
        if not out.exists() or out.read_text(encoding="utf-8") != text:
            out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
