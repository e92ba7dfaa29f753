"""Writes the module's ops from the core's headers. Each function declared in core/include/plugrad/ops becomes a function of
the package and, where its first parameter is the tensor that it works on, a method. The docstring joins the comment at the
declaration and the definition in sdk's ops.def. A declaration that this script cannot translate is an error.

generate.py ROOT OUT ...   writes C++ into as many files, of about equal length, which compile side by side
"""
import re
import sys
from pathlib import Path

HEADERS = ["elementwise", "factories", "indexing", "matmul", "sorting", "reduce", "views"]
LEFT_OUT = {"update": "steps of optimisers: plugrad.optim has them", "assignment": "x[key] = value does that",
            "derivatives": "plugrad.autograd has them", "advanced_indexing": "python/indexing.cpp: x[key]",
            "linalg": "several tensors as one result: python/linalg.cpp", "transform": "python/bound.hpp: in place"}
OWN_METHODS = {"reshape", "permute", "expand", "to"}  # python/tensor.cpp: they also take extents one by one, or dtypes
# Headers whose functions are no methods.
FUNCTIONS_ONLY = {"attention", "convolution", "images", "layers", "losses", "margin_losses", "normalization", "pooling",
                  "resampling"}
# Names of first parameters that the function does not work on.
NOT_METHODS = {"like", "condition", "indices", "mean", "deviation", "sorted_sequence", "elements"}
PARAMETERS = {"const Tensor&", "Number", "const Shape&", "int", "int64_t", "bool", "double", "DType", "Device", "Reduction",
              "Approximation", "Interpolation", "Side", "std::optional<Number>", "std::optional<double>",
              "std::optional<int64_t>", "std::optional<DType>", "const std::vector<Tensor>&", "const std::vector<int64_t>&",
              "const std::vector<double>&", "const std::string&", "GridIndexing", "PadMode", "ScatterReduction",
              "std::optional<RoundingMode>", "BagMode", "std::optional<bool>", "ConvolutionPadding", "Resampling",
              "GridPadding"}
RESULTS = "Tensor|Shape|std::vector<Tensor>|ValuesIndices|MinMax|Unique|Histogram|bool|void"
PYTHON_NAMES = {"stddev": "std", "max_with_indices": "max", "min_with_indices": "min"}  # of functions
# Further overloads, (function, parameters), that come after those of the function: PyTorch's max of two tensors.
ALSO = {"max_with_indices": ("maximum", ("x", "other")), "min_with_indices": ("minimum", ("x", "other"))}
OTHER_NAMES = {"sign": ["sgn"], "digamma": ["psi"], "lgamma": ["gammaln"], "mvlgamma": ["multigammaln"],
               "pad": ["constant_pad_nd"], "split": ["split_with_sizes"],
               "abs": ["absolute"], "cat": ["concat", "concatenate"], "clamp": ["clip"], "div": ["divide", "true_divide"],
               "ge": ["greater_equal"], "gt": ["greater"], "le": ["less_equal"], "lt": ["less"], "movedim": ["moveaxis"],
               "mul": ["multiply"], "ne": ["not_equal"], "neg": ["negative"], "sub": ["subtract"],  # PyTorch's, too
               "equal": ["array_equal"], "tensor_split": ["array_split"], "transpose": ["swapaxes", "swapdims"],
               "trapezoid": ["trapz"], "vstack": ["row_stack"]}
# Functions that are also methods in place: x.relu_(). python/inplace.cpp has more, which compute nothing from x.
IN_PLACE = set("""abs acos acosh add addbmm addcdiv addcmul addmm addmv addr asin asinh atan atan2 atanh baddbmm
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max
    clamp_min copysign cos cosh cumprod cumsum deg2rad digamma div eq erf erfc erfinv exp exp2 expm1 float_power floor
    floor_divide fmod frac ge gt heaviside hypot i0 index_add index_copy index_fill index_reduce ldexp le lerp lgamma
    log log10 log1p log2 logical_and logical_not logical_or logical_xor logit lt masked_fill masked_scatter mul
    mvlgamma nan_to_num ne neg pow rad2deg reciprocal relu remainder renorm round rsqrt scatter scatter_add
    scatter_reduce sigmoid sign sin sinc sinh sqrt square sub tan tanh tril triu trunc xlogy""".split())
VARIADIC = {"meshgrid", "cartesian_prod", "block_diag", "broadcast_tensors"}  # also take tensors one by one
RENAMED = {"axis": "dim", "axes": "dim", "axis0": "dim0", "axis1": "dim1", "axis2": "dim2", "deviation": "std",
           "pads": "pad", "start_axis": "start_dim", "end_axis": "end_dim"}
RENAMED_IN = {("flip", "axes"): "dims", ("roll", "axes"): "dims", ("tile", "repeats"): "dims",
              ("unfold", "axis"): "dimension", ("tensordot", "axes"): "dims",
              ("rot90", "axes"): "dims", ("vander", "n"): "N", ("tensor_split", "sections"): "indices_or_sections",
              ("tensor_split", "indices"): "indices_or_sections", ("full", "value"): "fill_value",
              ("full_like", "value"): "fill_value"}
# PyTorch's names of the tensors, which calls may give as well: of the first one, and of others in one function.
FIRST_NAMES = {"x": "input", "a": "input", "logits": "input", "y": "input"}
FURTHER_NAMES = {"b": "other", ("lerp", "b"): "end", ("pow", "b"): "exponent", ("dot", "b"): "tensor",
                 ("vdot", "b"): "other", ("outer", "b"): "vec2", ("atan2", "x"): "other", ("where", "a"): "input",
                 ("where", "b"): "other", ("cross_entropy", "targets"): "target", ("heaviside", "x"): "input",
                 ("polygamma", "x"): "input"}
ALSO_NAMED = {"dims": "dim", "shape": "size"}  # python/calls.cpp passes NumPy's axis as dim
KEEPS_AXIS = {"max", "min"}  # except to these, where axis means another overload than dim
DEFAULTS = {"{}": "nb::tuple()", "{0}": "0", "{1}": "1", "DType::f32": "nb::none()", "default_device()": "nb::none()",
            "Reduction::mean": '"mean"', "Approximation::none": '"none"', "std::nullopt": "nb::none()",
            "DType::i64": '"i64"', "Interpolation::linear": '"linear"', "Side::left": '"left"',
            "BagMode::mean": '"mean"', "ConvolutionPadding::valid": '"valid"', "Resampling::nearest": '"nearest"',
            "Resampling::bilinear": '"bilinear"', "GridPadding::zeros": '"zeros"',
            "true": "true", "false": "false", "{0, 1}": "nb::make_tuple(0, 1)", "GridIndexing::ij": '"ij"'}
# Parameters and defaults for which None is the same as no numbers.
NONE_AS_EMPTY = {("const Shape&", "{}"), ("const std::vector<double>&", "{}")}


def is_factory(function, overload):
    """Whether it makes a tensor of its own: it may be asked to have a gradient."""
    result, parameters = overload
    return result == "Tensor" and function.name != "to" and (
        function.name.endswith("_like") or any(kind == "Device" for kind, _, _ in parameters))


class Function:
    def __init__(self, name):
        self.name, self.notes, self.overloads, self.header, self.not_methods = name, [], [], "", []

    def methods(self):
        """The overloads that are also methods."""
        return [each for each in self.overloads if each not in self.not_methods and each[1]
                and each[1][0][0] == "const Tensor&" and each[1][0][1] not in NOT_METHODS]

    def functions(self):
        """All overloads, in the order in which Python tries them: those that are no methods first, as unfold's."""
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


def parameter(text, where):
    """Returns (type, name, default or None)."""
    declared, _, default = (part.strip() for part in text.partition("="))
    match = re.fullmatch(r"(.*[&\s])\s*(\w+)", declared)
    if not match or match.group(1).strip() not in PARAMETERS:
        sys.exit(f"{where}: generate.py cannot pass the parameter '{text}'; it knows {', '.join(sorted(PARAMETERS))}")
    if default and default not in DEFAULTS and not re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", default):
        sys.exit(f"{where}: generate.py does not know the default '{default}'")
    return match.group(1).strip(), match.group(2), default or None


def statements(text):
    """Yields (comment above, declaration, comment beside) for each PLUGRAD_API function, in order. A comment belongs to the
    declaration below it, and to those that follow with the same name, or one that differs in 1d, 2d or 3d alone."""
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
        else:  # a blank line, or what is not a function and has a comment of its own, such as an enum
            comment, fresh, owner = [], True, None


def with_defaults(taken, function):
    """The parameters of an overload for a named padding: C++ cannot tell it by defaults, so Python takes the first one's."""
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
        if path.stem in FUNCTIONS_ONLY:
            function.not_methods.append(function.overloads[-1])


def definitions(path):
    """Returns name -> definition for the elementwise ops of ops.def. Other definitions name operands as kernels see them."""
    rows = re.findall(r'^PLUGRAD_OP\((\w+),\s*\d+, (?:elementwise|copy|generate),.*, "(.*)"\)$',
                      path.read_text(encoding="utf-8"),
                      re.MULTILINE)
    return {name.lower(): text for name, text in rows}


def docstring(function, defined):
    parts = [f"Element by element: {defined[function.name]}"] if function.name in defined else []
    parts += function.notes + [function.header]
    for cpp, python in ((" axes", " dims"), ("an axis", "a dim"), ("axis(?!=)", "dim"), ("undefined tensor", "None"),
                        (r"Throws Error \(invalid\)", "ValueError"), (r"an Error \(index_error\)", "an IndexError")):
        parts = [re.sub(cpp, python, part) for part in parts]
    return "\n\n".join(sentence(part) for part in parts if part)


def sentence(text):
    """Begins with a capital, unless the first word is a variable, and ends with a full stop."""
    first = text[0].upper() if re.match(r"[a-z]{2,}[ ,.]", text) else text[0]
    return first + text[1:] + ("" if text.endswith((".", ")")) else ".")


# The first parameter that is given by name only, because PyTorch has another one in its place: unbiased.
BY_NAME = dict.fromkeys(["var", "stddev", "var_mean", "std_mean"], "keepdim")


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def argument(name, kind, default):
    """A parameter as nanobind takes it. A tensor that may be left out may also be None."""
    if default is None and (kind, name) == ("const Tensor&", "min"):  # of clamp, where max may stand alone
        return f'nb::arg("{name}").none() = nb::none()'
    if default is None and kind.startswith("std::optional"):
        return f'nb::arg("{name}").none()'
    if default is None:
        return f'nb::arg("{name}")'
    if kind.startswith("std::optional") and default != "std::nullopt":
        return f'nb::arg("{name}").none() = {DEFAULTS.get(default, default)}'
    if kind == "const Tensor&" or default == "std::nullopt" or (kind, default) in NONE_AS_EMPTY:
        return f'nb::arg("{name}").none() = nb::none()'
    return f'nb::arg("{name}") = {DEFAULTS.get(default, default)}'


def binding(target, function, overload, doc, as_method):
    """The definition by PyTorch's names of parameters, and another one where ALSO_NAMED has a name."""
    result, parameters = overload
    types = ", ".join(kind for kind, _, _ in parameters)
    cpp = f"plugrad::{function.name}"
    shown = PYTHON_NAMES.get(function.name, function.name)
    factory = not as_method and is_factory(function, overload)
    end_of_factory = ', nb::kw_only(), nb::arg("requires_grad") = false' if factory else ""
    call = f'  {target}.def("{shown}", {"tracked" if factory else "bound"}(static_cast<{result} (*)({types})>(&{cpp}))'
    taken = parameters[1:] if as_method else parameters
    names = [RENAMED_IN.get((function.name, name), RENAMED.get(name, name)) for _, name, _ in taken]
    other_names = ["axis" if name == "dim" and function.name in KEEPS_AXIS else ALSO_NAMED.get(name, name) for name in names]
    variants = [(names, f",\n      {literal(doc)}" if doc else "")]
    if other_names != names:
        variants.append((other_names, ""))
    def texts_of(chosen):
        for name, (kind, _, default) in zip(chosen, taken):
            if BY_NAME.get(function.name) == name:
                yield "nb::kw_only()"
            yield argument(name, kind, default)

    texts = [", ".join(["", *texts_of(chosen)]) for chosen, _ in variants]
    return "".join(f"{call}{text}{end_of_factory}{end});\n" for text, (_, end) in zip(texts, variants))


def in_place(function, overload):
    """The method that writes into its tensor."""
    result, parameters = overload
    if function.name not in IN_PLACE or result != "Tensor":
        return ""
    types = ", ".join(kind for kind, _, _ in parameters)
    cpp = f"plugrad::{function.name}"
    names = [RENAMED_IN.get((function.name, name), RENAMED.get(name, name)) for _, name, _ in parameters[1:]]
    texts = "".join(f", {argument(name, kind, default)}" for name, (kind, _, default) in zip(names, parameters[1:]))
    return (f'  tensor.def("{function.name}_", in_place("{function.name}_", '
            f'static_cast<Tensor (*)({types})>(&{cpp})){texts},\n      "The same as {function.name}, in place.");\n')


def other_function(target, function, as_method):
    """The definition of the overload that ALSO names: of elementwise functions of two tensors."""
    if function.name not in ALSO:
        return ""
    cpp, names = ALSO[function.name]
    texts = "".join(f', nb::arg("{name}")' for name in names[int(as_method):])
    types = ", ".join(["const Tensor&"] * len(names))
    shown = PYTHON_NAMES.get(function.name, function.name)
    return f'  {target}.def("{shown}", bound(static_cast<Tensor (*)({types})>(&plugrad::{cpp})){texts});\n'


def variadic(function):
    """The overload that takes tensors one by one; what follows them has a name."""
    if function.name not in VARIADIC:
        return ""
    result, parameters = function.overloads[0]
    types = ", ".join(kind for kind, _, _ in parameters)
    names = [argument(name, kind, default) for kind, name, default in parameters[1:]]
    texts = ", ".join(['nb::arg("tensors")'] + (["nb::kw_only()"] + names if names else []))
    return f'  m.def("{function.name}", spread(static_cast<{result} (*)({types})>(&plugrad::{function.name})), {texts});\n'


def with_indices(function, twin):
    """The overload that also takes return_indices, of a function that has a twin which returns them."""
    _, parameters = function.overloads[0]
    if not twin or twin.overloads[0][1] != parameters:
        return ""
    types = ", ".join(kind for kind, _, _ in parameters)
    casts = [f"static_cast<{result} (*)({types})>(&plugrad::{name})"
             for result, name in (("Tensor", function.name), ("ValuesIndices", f"{function.name}_with_indices"))]
    names = ", ".join(argument(name, kind, default) for kind, name, default in parameters)
    names += ', nb::arg("return_indices") = false'
    return f'  m.def("{function.name}", either({", ".join(casts)}), {names});\n'


def other_names(functions):
    """The lines that name functions a second time. They come last: an overload that is added later replaces the object."""
    lines = []
    for function in functions:
        methods = function.methods()
        for other in OTHER_NAMES.get(function.name, []):
            names = [("m", other, function.name)] + [("tensor", other, function.name)] * bool(methods)
            names += [("tensor", f"{other}_", f"{function.name}_")] * (function.name in IN_PLACE)
            lines += [f'  {target}.attr("{new}") = {target}.attr("{name}");\n' for target, new, name in names]
    return lines


def torch_names(function):
    """The lines that let calls name tensors as PyTorch does."""
    first = {function.overloads[0][1][0][1]} if function.overloads[0][1] else set()
    pairs = {}
    for _, parameters in function.overloads:
        for kind, name, _ in parameters:
            theirs = FURTHER_NAMES.get((function.name, name), FURTHER_NAMES.get(name))
            theirs = FIRST_NAMES.get(name) if name in first and (function.name, name) not in FURTHER_NAMES else theirs
            if theirs and theirs != name and kind in ("const Tensor&", "Number"):
                pairs[name] = theirs
    shown = PYTHON_NAMES.get(function.name, function.name)
    targets = ["m"] + ["tensor"] * bool(function.methods() and function.name not in OWN_METHODS)
    return [f'  also_named({target}.attr("{shown}"), "{theirs}", "{name}");\n'
            for target in targets for name, theirs in pairs.items() if target == "m" or name not in first]


def bindings(function, functions, defined):
    """All definitions of a function, and of its methods."""
    doc = docstring(function, defined)
    code = [binding("m", function, overload, doc if i == 0 else "", False)
            for i, overload in enumerate(function.functions())]
    code += [other_function("m", function, False), variadic(function)]
    code.append(with_indices(function, functions.get(f"{function.name}_with_indices")))
    methods = function.methods()
    if methods and function.name not in OWN_METHODS:
        for i, overload in enumerate(methods):
            code += [binding("tensor", function, overload, doc if i == 0 else "", True), in_place(function, overload)]
        code.append(other_function("tensor", function, True))
    return "".join(code)


def parts_of(texts, count):
    """The texts in their order, in `count` lists of about equal length."""
    total, seen, parts = sum(map(len, texts)), 0, [[] for _ in range(count)]
    for text in texts:
        parts[min(count - 1, seen * count // total)].append(text)
        seen += len(text)
    return parts


SIGNATURE = "(nb::module_& m, nb::class_<Tensor>& tensor)"


def written_parts(texts, count, last):
    """The texts of the files. The first has the functions that the module calls; names given a second time come last."""
    files = []
    for number, part in enumerate(parts_of(texts, count)):
        files.append(f"void bind_functions_{number}{SIGNATURE} {{\n{''.join(part)}}}\n")
    calls = "".join(f"  bind_functions_{number}(m, tensor);\n" for number in range(count))
    declared = "".join(f"void bind_functions_{number}{SIGNATURE};\n" for number in range(1, count))
    files[0] = (f"{declared}\n{files[0]}\nvoid bind_functions{SIGNATURE} {{\n{calls}}}\n\n"
                f"void bind_other_names{SIGNATURE} {{\n{''.join(last)}}}\n")
    return [f"#include <python/bound.hpp>\n\nnamespace plugrad::python {{\n\n{text}\n}}  // namespace plugrad::python\n"
            for text in files]


def main(arguments):
    root, *outs = map(Path, arguments)
    headers = root / "core/include/plugrad/ops"
    found = {path.stem for path in headers.glob("*.hpp")}
    functions = {}
    for stem in HEADERS + sorted(found - set(HEADERS) - set(LEFT_OUT)):
        read_header(headers / f"{stem}.hpp", functions)
    defined = definitions(root / "sdk/include/plugrad/sdk/ops.def")
    if bare := [name for name, function in functions.items() if not function.notes and name not in defined]:
        sys.exit(f"generate.py: no comment says what these functions do: {', '.join(bare)}")
    texts = [bindings(function, functions, defined) for function in functions.values()]
    last = other_names(functions.values()) + [line for each in functions.values() for line in torch_names(each)]
    for out, text in zip(outs, written_parts(texts, len(outs), last)):
        if not out.exists() or out.read_text(encoding="utf-8") != text:
            out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
