"""Docstrings, which come from the comments of the core's headers."""
import re
import tomllib

import plugrad


def test_every_declaration_of_the_core_is_here_with_its_docstring(root):
    """The generator makes the module's functions from the headers, so each function of a header is in the module."""
    names = set()
    left_out = tomllib.loads((root / "python/functions.toml").read_text())["headers"]["left_out"]
    for header in (root / "core/include/plugrad/ops").glob("*.hpp"):
        if header.stem not in left_out:
            names |= set(re.findall(r"^PLUGRAD_API [\w:<>]+ (\w+)\(", header.read_text(), re.MULTILINE))
    others = {"stddev": "std", "max_with_indices": "max", "min_with_indices": "min"}
    names = {others.get(name, name) for name in names}
    assert {"add", "split", "std", "clip_grad_value_", "relu", "matmul", "cross_entropy", "reshape"} <= names
    for name in names:
        function = getattr(plugrad, name)
        assert len(function.__doc__) > len(name) + 60, name
    assert "0 where x < 0" in plugrad.relu.__doc__ and "gradient 0 at 0" in plugrad.Tensor.relu.__doc__.lower()
    assert "tensor of zeros" in plugrad.zeros.__doc__ and "x - ln" in plugrad.log_softmax.__doc__
    assert "(.., m, n)" in plugrad.matmul.__doc__ and "ValueError" in plugrad.matmul.__doc__


def test_functions_behind_an_enum_have_their_own_documentation():
    for name, own, of_the_enum in (("interpolate", "x with `size`", "The computation of an element"),
                                   ("unique", "The distinct elements of x, sorted", "inverse: for each element"),
                                   ("quantile", "The elements at the place", "The value of a quantile between"),
                                   ("grid_sample", "at the places grid", "The elements beyond x: zeros")):
        text = getattr(plugrad, name).__doc__
        assert own in text and of_the_enum not in text, name
    assert "axis= in place of dim=" in plugrad.sort.__doc__ and "an dim" not in plugrad.sort.__doc__
