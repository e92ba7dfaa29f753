"""The texts of tensors and modules: options of printing, and notebooks."""
import math

import plugrad
import pytest
from plugrad import nn


@pytest.fixture
def print_options():
    before = plugrad.get_printoptions()
    yield
    plugrad.set_printoptions(**before)


def stripped(text):
    return [line.strip() for line in text.splitlines()]


def test_print_options_are_numpys(print_options):
    np = pytest.importorskip("numpy")
    x = np.random.default_rng(1).normal(size=(40, 30)).astype("float32")
    for options in ({"precision": 2}, {"precision": 0}, {"edgeitems": 1}, {"linewidth": 40}, {"threshold": 2000},
                    {"threshold": math.inf, "linewidth": 200}, {"precision": 3, "edgeitems": 5, "linewidth": 50}):
        plugrad.set_printoptions(profile="default")
        plugrad.set_printoptions(**options)
        limits = {name: min(value, 10 ** 9) for name, value in options.items()}
        with np.printoptions(**{"linewidth": 75, **limits}):
            for shown in (x, x[0], x[:3, :4] * 1e4, x[:2, :2] * 1e-6, (x[:9] * 100).astype("int64")):
                text = repr(plugrad.tensor(shown)).removeprefix("Tensor(").split(", dtype=")[0].removesuffix(")")
                assert stripped(text) == stripped(str(shown)), options


def test_digits_and_exponent_are_of_one_number():
    assert repr(plugrad.tensor([1e11, 1.17549435e-38])) == "Tensor([9.9999998e+10 1.1754944e-38])"


def test_print_options_as_pytorch_names_them(print_options):
    x = plugrad.tensor([1500.0, 0.25])
    plugrad.set_printoptions(sci_mode=True, precision=2)
    assert repr(x) == "Tensor([1.5e+03 2.5e-01])"
    plugrad.set_printoptions(sci_mode=False)
    assert repr(plugrad.tensor([1e9, 0.25])) == "Tensor([1000000000.            0.25])"
    plugrad.set_printoptions(sci_mode=None, threshold=1000.0)
    assert plugrad.get_printoptions()["precision"] == 2 and plugrad.get_printoptions()["sci_mode"] is None
    plugrad.set_printoptions(profile="full")
    assert "..." not in repr(plugrad.zeros(2000))
    for wrong in ({"precision": -1}, {"edgeitems": 0}, {"linewidth": 0}, {"threshold": -1}, {"profile": "long"}):
        with pytest.raises(ValueError, match="set_print"):
            plugrad.set_printoptions(**wrong)


def test_notebooks_show_modules_that_fold():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
    model[0].requires_grad_(False)
    page = model._repr_html_()
    assert page.count("<details") == page.count("</details>") == 2 and page.count(" open>") == 1
    assert "Sequential <small>13 parameters, 9 frozen</small>" in page and "(1): Sequential" in page
    assert "(0): ReLU()</div>" in page and "Linear(in_features=3, out_features=1, bias=True) <small>4 parameters" in page
