"""Functions of the module as objects, the names that calls may use, and the table behind them."""
import inspect
import pickle
import weakref

import plugrad
import pytest


@pytest.mark.parametrize("row, wrong", [
    ("nothing = { also = ['none'] }", "function nothing"), ("relu = { in_plase = true }", "column in_plase of relu"),
    ("relu = { renamed = { y = 'z' } }", "parameter y of relu"),
    ("relu = { accepts = { y = ['z'] } }", "parameter y of relu"),
    ("relu = { by_name_from = 'y' }", "parameter y of relu")])
def test_a_row_of_the_table_that_names_nothing_is_an_error(root, tmp_path, run_python, row, wrong):
    (tmp_path / "generate.py").write_text((root / "python/generate.py").read_text())
    table = (root / "python/functions.toml").read_text()
    (tmp_path / "functions.toml").write_text(f"{table}\n{row}\n")
    code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    failed = run_python(code, tmp_path / "generate.py", root, tmp_path / "out.cpp", check=False)
    assert failed.returncode and f"functions.toml: unknown: {wrong}" in failed.stderr


def test_functions_have_signatures_and_pickle():
    for function in (plugrad.relu, plugrad.Tensor.relu, plugrad.zeros):
        assert pickle.loads(pickle.dumps(function)) is function and weakref.ref(function)() is function
    assert list(inspect.signature(plugrad.sum).parameters) == ["x", "dim", "keepdim"]
    assert inspect.signature(plugrad.softplus).parameters["beta"].default == 1
    assert repr(plugrad.Tensor.relu) == "<method Tensor.relu>" and plugrad.relu.__doc__.startswith("relu(x: ")
    bound = plugrad.ones(2).relu
    assert bound().tolist() == [1, 1] and bound.__self__.shape == (2,)


@pytest.mark.parametrize("call, message", [
    (lambda: plugrad.flip(plugrad.ones(2), dim="x"), r"^\[flip\] 'dims' is a str, expected"),
    (lambda: plugrad.optim.SGD([], rate=1), r"^\[SGD\] there is no parameter 'rate': call SGD\(params, lr=0.001, "),
    (lambda: plugrad.DType(3), r"^\[DType\] 'name' is an int, expected a dtype, a str or None: call DType\(name\)$"),
    (lambda: setattr(plugrad.ones(2), "data", 3), r"^\[data\] 'data' is an int, expected a Tensor"),
    (lambda: plugrad.rand(2, generator=3), r"^\[rand\] generator must be None or a plugrad.Generator$"),
    (lambda: plugrad.ones(2, generator=None, rows=3), r"^\[ones\] there is no parameter 'rows'"),
    (lambda: plugrad.sum(plugrad.ones(2), dim=0, axis=0), r"^\[call\] 'dim' is given twice, by two of its names$")])
def test_messages_of_calls_by_other_names_of_constructors_and_of_setters(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_an_error_beside_a_generator_is_the_functions_own_and_the_generator_stays():
    generator = plugrad.Generator().manual_seed(3)
    plugrad.manual_seed(7)
    expected = plugrad.rand(4).tolist()
    plugrad.manual_seed(7)
    for wrong in (lambda: plugrad.randint(5, 0, (2,), generator=generator),
                  lambda: plugrad.rand(2, nope=1, generator=generator)):
        with pytest.raises((ValueError, TypeError)):
            wrong()
    assert plugrad.rand(4).tolist() == expected


def test_functions_cannot_be_made():
    for kind in (type(plugrad.sum), type(plugrad.Tensor.sum)):
        with pytest.raises(TypeError, match="functions of plugrad cannot be made"):
            kind()
