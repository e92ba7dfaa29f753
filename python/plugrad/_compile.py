"""Functions recorded once and then replayed: training steps and forward passes."""

import copy
import functools
import io
import os
from collections.abc import Callable, Iterable, MutableMapping, MutableSequence, MutableSet
from types import FunctionType, MethodType
from typing import Any, NamedTuple, overload

from . import _plugrad
from ._impurities import noting_impurities
from ._key_texts import PLAIN, Attributes, Outside
from ._plugrad import Tensor

_CHANGING = bytearray, memoryview, MutableSequence, MutableMapping, MutableSet
_ANYTHING_ELSE = 64  # objects kept alive by a function: no new object gets the identity of a kept object


def _difference(before: dict[str, str], now: dict[str, str]) -> str:
    """Names the first value that differs: "beta is float 0.5, was float 0.4"."""
    for name in [*now, *before]:
        if before.get(name) != now.get(name):
            return f"{name.removesuffix('=')} is {_short(now.get(name))}, was {_short(before.get(name))}"
    return ""


def _short(text: str | None) -> str:
    return "missing" if text is None else text if len(text) < 80 else text[:77] + "..."


def _parameters_of(function: Any) -> tuple[str, ...]:
    """The names of positional parameters, for messages."""
    if isinstance(function, MethodType):
        return _parameters_of(function.__func__)[1:]
    if not isinstance(function, FunctionType):
        return ()
    return function.__code__.co_varnames[:function.__code__.co_argcount]


def _is_iterator(value: Any) -> bool:
    return hasattr(type(value), "__next__") and not isinstance(value, io.IOBase)


class CompileFigures(NamedTuple):
    """Numbers of calls: recordings, replays, and plain calls of the function."""

    recorded: int
    replayed: int
    called: int


class _Place(NamedTuple):
    """A tensor's place in nested lists, tuples and dicts."""

    at: int


def _taken_apart(value: Any, tensors: list[Tensor], others: Callable[[Any], Any]) -> Any:
    """Moves the tensors in nested lists, tuples and dicts to a list; others(value) replaces each other value."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Place(len(tensors) - 1)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_taken_apart(each, tensors, others) for each in value))
    if isinstance(value, list | tuple):
        return type(value)(_taken_apart(each, tensors, others) for each in value)
    if isinstance(value, dict):
        return _with_items(value, ((key, _taken_apart(each, tensors, others)) for key, each in value.items()))
    return others(value)


def _with_items(like: dict[Any, Any], items: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """A dict of the same class, such as OrderedDict or defaultdict, with these items."""
    if type(like) is dict:
        return dict(items)
    made = copy.copy(like)
    made.clear()
    made.update(items)
    return made


def _put_together(form: Any, tensors: Any) -> Any:
    if isinstance(form, _Place):
        return tensors[form.at]
    if isinstance(form, tuple) and hasattr(form, "_fields"):
        return type(form)(*(_put_together(each, tensors) for each in form))
    if isinstance(form, list | tuple):
        return type(form)(_put_together(each, tensors) for each in form)
    if isinstance(form, dict):
        return _with_items(form, ((key, _put_together(each, tensors)) for key, each in form.items()))
    return form


class Compiled(_plugrad._CompiledStep):
    """A function returned by `compile`."""

    # The base class has __call__, and calls _look, _run, _call and _results.

    def __init__(self, function: Callable[..., Any], name: str, entries: int, fuse: bool, memory: int) -> None:
        super().__init__(name, entries, fuse, memory)
        functools.update_wrapper(self, function)
        self._function, self._name, self._options = function, name, (name, entries, fuse, memory)
        self._forms: list[Any] = [_Place(0)]  # forms of results; form 0 is a lone tensor
        self._numbers = {self._text(self._forms[0]): 0}
        self._objects: dict[int, Any] = {}    # the objects in keys
        self._attributes = Attributes(function)
        self._outside: Outside | None = None
        self._last: dict[str, str] | None = None  # the arguments of the last call, with places instead of tensors

    def _look(self) -> None:
        """Finds the values outside on which the function depends: none are known, or one has changed."""
        before, self._outside = self._outside, self._attributes.outside()
        self._set_outside(self._outside.guards, self._outside.digest)
        if before is not None and (changed := _difference(before.values, self._outside.values)):
            self._note_change(changed)

    def _run(self, *given: Any, **named: Any) -> tuple[list[Tensor], int]:
        made: list[Tensor] = []
        flaw = self._attributes.flaw or (self._outside.flaw if self._outside is not None else "")
        if flaw:
            _plugrad._note_unrepeatable(flaw)
        with noting_impurities():
            returned = self._function(*given, **named)
        self._require_unchanged()
        results = _taken_apart(returned, made, self._result)
        text = self._text(results)
        if text not in self._numbers:
            self._numbers[text] = len(self._forms)
            self._forms.append(results)
        return made, self._numbers[text]

    def _require_unchanged(self) -> None:
        """Tells the recording if the function itself changed a value outside that it may read."""
        before = self._outside
        if before is None or self._holds():
            return
        self._look()
        changed = _difference(before.values, self._outside.values) if self._outside else ""
        if changed:
            _plugrad._note_unrepeatable(f"it changes what it may read: {changed}")

    def _call(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        tensors: list[Tensor] = []
        if len(self._objects) + len(self._attributes) > _ANYTHING_ELSE:
            self.clear()
        form = _taken_apart((arguments, named), tensors, self._known)

        def run(*given: Tensor) -> tuple[list[Tensor], int]:
            positional, keywords = _put_together(form, given)
            made = self._run(*positional, **keywords)
            self._require_none_added((positional, keywords), given)
            return made

        self._attributes.flaw = ""
        texts = self._texts(form)
        while self._attributes.grew():
            self._set_outside(None, "")
            texts = self._texts(form)
        before, self._last = self._last, texts
        if before is not None and (changed := _difference(before, texts)):
            self._note_change(changed)
        text = ";".join(f"{name}={each}" for name, each in texts.items())
        return self._results(*self._replayed(tensors, text, run))

    def _require_none_added(self, arguments: Any, given: tuple[Tensor, ...]) -> None:
        """The function gets copies of the lists and dicts among its arguments, and replays put nothing into the caller's
        lists and dicts. Raises ValueError if the function put a tensor into a copy."""
        found: list[Tensor] = []
        _taken_apart(arguments, found, lambda value: value)
        known = {id(each) for each in given}
        if any(id(each) not in known for each in found):
            raise ValueError(f"[compile] '{self._name}' puts a tensor into a list or a dict that is an argument, which a "
                             "replay could not do: return that tensor")

    def _results(self, tensors: list[Tensor | None], number: int) -> Any:
        return _put_together(self._forms[number], tensors)

    def __copy__(self) -> "Compiled":
        """Returns itself, as copy.copy does for a function."""
        return self

    def __deepcopy__(self, memo: Any) -> "Compiled":
        """Returns itself for a plain function, and a new Compiled for a method or a module, whose copy is a new object."""
        function = copy.deepcopy(self._function, memo)
        return self if function is self._function else Compiled(function, *self._options)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _known(self, value: Any) -> Any:
        if type(value) not in PLAIN:
            if type(value).__module__.split(".")[0] in ("numpy", "torch"):
                raise ValueError(f"[compile] an argument of '{self._name}' is a {type(value).__module__}."
                                 f"{type(value).__name__}: pass a Tensor, or a number of Python")
            if isinstance(value, _CHANGING) or _is_iterator(value):
                raise ValueError(f"[compile] an argument of '{self._name}' is a {type(value).__qualname__}, whose elements "
                                 "may change between calls, and a replay would not see that: pass a tuple, list or dict of "
                                 "tensors and numbers")
            self._keep(value)
            self._attributes.add(value)
        return value

    def _keep(self, value: Any) -> None:
        """Keeps an object alive whose identity is in a key. A bound method is a new object each time."""
        for each in (value.__self__, value.__func__) if isinstance(value, MethodType) else (value,):
            self._objects[id(each)] = each

    def _result(self, value: Any) -> Any:
        if value is not None:
            raise ValueError(f"[compile] '{self._name}' returns a {type(value).__name__}: return tensors, None, and lists, "
                             "tuples and dicts of them, since a replay computes nothing else")
        return value

    def _texts(self, form: tuple[tuple[Any, ...], dict[str, Any]]) -> dict[str, str]:
        """The arguments of a call, with places instead of tensors, as text, by their names."""
        names = _parameters_of(self._function)
        texts = {names[i] if i < len(names) else f"argument {i}": self._text(each) for i, each in enumerate(form[0])}
        return texts | {f"{name}=": self._text(each) for name, each in form[1].items()}

    def _text(self, value: Any) -> str:
        """Returns the values of a call, with places instead of tensors, as text."""
        if isinstance(value, _Place):
            return f"T{value.at}"
        if isinstance(value, list | tuple):
            return f"{self._class(value)}({','.join(map(self._text, value))})"
        if isinstance(value, dict):
            items = (f"{self._text(self._known(key))}:{self._text(each)}" for key, each in value.items())
            return f"{self._class(value)}{{{','.join(items)}}}"
        if type(value) is slice:
            return f"slice({','.join(self._text(self._known(each)) for each in (value.start, value.stop, value.step))})"
        if type(value) in PLAIN:
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, MethodType):
            return f"{id(value.__func__)} of {id(value.__self__)}{self._attributes.text(value.__self__)}"
        return f"{self._class(value)} at {id(value)}{self._attributes.text(value)}"

    def _class(self, value: Any) -> str:
        """The name of a class, with its identity unless it is built in."""
        kind = type(value)
        if kind in (list, tuple, dict):
            return kind.__name__
        self._objects[id(kind)] = kind
        return f"{kind.__qualname__} {id(kind)}"

    def clear(self) -> None:
        """Drops all recordings. Call it when something has changed on which the function depends."""
        self._clear()
        self._set_outside(None, "")
        self._objects.clear()
        self._attributes.clear()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the only recording as a file, with its weights; `load_model`, C++'s `plugrad::load_model` and the
        command `plugrad run` run it, on any device. A path that ends in .onnx gets an ONNX model of opset 20, for these
        shapes. The function must be a forward pass, such as a model in evaluation mode
        under `no_grad`, called once with contiguous tensors of the shapes to save. Raises ValueError for anything else:
        several recordings, gradients, random numbers, optimisers, writes to older tensors, and ops of one device alone; and
        NotImplementedError for an op without a counterpart in ONNX."""
        self._save(path)

    def explain(self) -> str:
        """Lists the recordings with their calls, fusions and memory, and says why calls run alone or were not recorded."""
        return str(self._explain())

    def figures(self) -> CompileFigures:
        """Returns the numbers of recordings, of replays, and of plain calls of the function."""
        return CompileFigures(*self._figures())


@overload
def compile(function: Callable[..., Any], *, name: str | None = None, entries: int = 0,  # noqa: A001
            fuse: bool = True, memory: int = 256 << 20) -> Compiled: ...
@overload
def compile(function: None = None, *, name: str | None = None,  # noqa: A001
            entries: int = 0, fuse: bool = True, memory: int = 256 << 20) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(function: Callable[..., Any] | None = None, *, name: str | None = None,  # noqa: A001
            entries: int = 0, fuse: bool = True, memory: int = 256 << 20) -> Any:
    """Returns a function with the same results as `function`, bit for bit. Its first call runs `function` and records the
    kernels; later calls replay the kernels, without Python and with all temporary memory in one planned block. The function
    may be a forward pass, or a whole training step:

    >>> @plugrad.compile
    ... def step(x, y):
    ...     optimizer.zero_grad()
    ...     loss = plugrad.cross_entropy(model(x), y)
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss

    A recording serves arguments of the same shapes, strides, dtypes and devices, with the same modes (no_grad, autocast,
    training modules) and the same values besides tensors: numbers and text by value, objects by class, identity and the
    values among the attributes that the function reads. Iterators, sets and other mutable containers, except lists and
    dicts, raise ValueError. The same holds for what the function's code refers to: globals, closures, defaults, attributes,
    items and methods. New values make a new recording. A step keeps at most `entries` recordings, 0 for as many as
    `memory` bytes of the host hold; then a new one replaces the one that was not used for longest. Tensors may lie in
    lists, tuples and dicts, also in results.

    Tensors that the function refers to, such as parameters, are part of the recording, and a replay reads their current
    elements. So are the gradients it reads and stores, the random numbers it draws, and options and counters of optimisers.

    Results have no graph: call backward() inside. The function must not:

    - read the elements of a tensor (item, print, numpy), copy an array or a tensor to another device: ValueError;
    - read the clock, files or random numbers of Python, change what it may read, or keep its new tensors, except gradients:
      it is then called each time, after one warning.

    Successive calls run as one kernel, a fusion, where the device offers fusions. A fusion takes less time and memory and
    computes the same bits; `fuse=False` keeps the calls apart.

    PLUGRAD_CAPTURE=off switches recording off; check compares every 16th replay with the function and raises RuntimeError
    with the name of the first differing call.
    """
    if function is None:
        return functools.partial(compile, name=name, entries=entries, fuse=fuse, memory=memory)
    return Compiled(function, name or str(getattr(function, "__name__", "step")), entries, fuse, memory)


class SavedModel:
    """A model saved by `Compiled.save`, on one device."""

    def __init__(self, path: str | os.PathLike[str], device: Any = None, mmap: bool = True) -> None:
        self._model = _plugrad._load_model(path, device, mmap)

    @property
    def inputs(self) -> list[tuple[tuple[int, ...], _plugrad.DType]]:
        """The shapes and dtypes of the inputs."""
        return list(self._model.inputs())

    @property
    def outputs(self) -> list[tuple[tuple[int, ...], _plugrad.DType]]:
        """The shapes and dtypes of the results."""
        return list(self._model.outputs())

    def __call__(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Returns the result, or a tuple of several results. Raises ValueError for inputs of wrong shapes, dtypes or
        devices, and TypeError for inputs that are not tensors."""
        made: list[Tensor] = self._model.call(list(inputs))
        return made[0] if len(made) == 1 else tuple(made)

    def explain(self) -> str:
        """Describes the model as `Compiled.explain` describes a compiled function."""
        return str(self._model.explain())


def load_model(path: str | os.PathLike[str], device: Any = None, mmap: bool = True) -> SavedModel:
    """Reads a model saved by `Compiled.save`, with its weights to the device.

    mmap: whether large weights are pages of the file, on devices with the host's memory; processes share them. The file must
    stay as it is then: replace it by renaming another. Raises OSError for a file that is missing, damaged or of a later
    version, and for a model that needs more memory than the device has.
    """
    return SavedModel(path, device, mmap)
