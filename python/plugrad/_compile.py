"""Functions recorded once and then replayed: training steps and forward passes."""

import copy
import functools
import io
import os
from collections.abc import Callable, MutableMapping, MutableSequence, MutableSet
from types import FunctionType, MethodType
from typing import Any, NamedTuple, overload

from . import _plugrad
from ._forms import Place, put_together, taken_apart
from ._impurities import functions_of, noting_calls
from ._key_texts import PLAIN, Attributes, Outside, difference, is_number, joined
from ._lifted import NotLiftable, Numbers
from ._plugrad import Tensor

_CHANGING = bytearray, memoryview, MutableSequence, MutableMapping, MutableSet
_ANYTHING_ELSE = 64  # objects kept alive by a function: no new object gets the identity of a kept object
_TRIES = 3  # of lifting a number
_MANY = 10_000  # kinds of calls with lifted numbers
_OF_THE_CALL = " of the call"


class CompileFigures(NamedTuple):
    """Numbers of calls: recordings, replays, and plain calls of the function."""

    recorded: int
    replayed: int
    called: int


def _with_lifted(numbers: Numbers, places: list[int | str], given: tuple[Any, ...],
                 named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with numbers of a recording at these positions and names."""
    positional, named = list(given), dict(named)
    for each in places:
        place: Any = named if isinstance(each, str) else positional
        place[each] = numbers.lifted(place[each])
    return tuple(positional), named


def _parameters_of(function: Any) -> tuple[str, ...]:
    """The names of positional parameters, for messages."""
    if isinstance(function, MethodType):
        return _parameters_of(function.__func__)[1:]
    if not isinstance(function, FunctionType):
        return ()
    return function.__code__.co_varnames[:function.__code__.co_argcount]


def _is_iterator(value: Any) -> bool:
    return hasattr(type(value), "__next__") and not isinstance(value, io.IOBase)


class Compiled(_plugrad._CompiledStep):
    """A function returned by `compile`."""

    # The base class has __call__, and calls _look, _run, _call and _results.

    def __init__(self, function: Callable[..., Any], name: str, entries: int, fuse: bool, memory: int) -> None:
        super().__init__(name, entries, fuse, memory)
        functools.update_wrapper(self, function)
        self._function, self._name, self._options = function, name, (name, entries, fuse, memory)
        self._forms: list[Any] = [Place(0)]  # forms of results; form 0 is a lone tensor
        self._numbers = {self._text(self._forms[0]): 0}
        self._objects: dict[int, Any] = {}    # the objects in keys
        self._attributes = Attributes(function)
        self._outside: Outside | None = None
        self._last: dict[str, str] | None = None  # the arguments of the last call, with places instead of tensors
        self._last_outside = ""
        self._lifted: set[str] = set()   # arguments whose numbers are no part of the key, by name
        self._failures: dict[str, int] = {}  # of lifting them
        self._plain: set[str] = set()    # calls that were recorded for plain numbers, without the numbers
        self._lifted_numbers: dict[int, Numbers] = {}  # by form of results

    def _look(self) -> None:
        """Finds the values outside on which the function depends: none are known, or one has changed."""
        before, self._outside = self._outside, self._attributes.outside()
        self._set_outside(self._outside.guards, self._outside.digest)
        if before is not None and (changed := difference(before.values, self._outside.values)):
            self._note_change(changed)

    def _run(self, outside: str, *given: Any, **named: Any) -> tuple[list[Tensor], int]:
        """Calls the function, for a recording under the key `outside`."""
        made: list[Tensor] = []
        results = taken_apart(self._called(outside, given, named), made, self._result)
        text = self._text(results)
        if text not in self._numbers:
            self._numbers[text] = self._add_form(results)
        return made, self._numbers[text]

    def _run_lifted(self, outside: str, lifted: list[int | str], given: tuple[Any, ...],
                    named: dict[str, Any]) -> tuple[list[Tensor], int]:
        """As _run, with numbers of the recording instead of the arguments `lifted`, by position or name."""
        made: list[Tensor] = []
        numbers = Numbers()
        _plugrad._begin_lifting()
        try:
            returned = self._called(outside, *_with_lifted(numbers, lifted, given, named))
        finally:
            holds = numbers.end() & _plugrad._end_lifting()
        if not holds:
            _plugrad._note_unrepeatable("its code looks at the value of a number that differs each time, or keeps it")
        form = self._add_form(taken_apart(returned, made, self._result))
        self._lifted_numbers[form] = numbers
        return made, form

    def _add_form(self, results: Any) -> int:
        self._forms.append(results)
        return len(self._forms) - 1

    def _called(self, outside: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Calls the function under the eyes of the recording, if it is recorded."""
        if not _plugrad._is_recording():
            return self._function(*given, **named)
        before = self._attributes.outside()
        if not outside.startswith(before.digest):
            _plugrad._note_unrepeatable("another thread changed what it may read")
        if before.flaw or self._attributes.flaw:
            _plugrad._note_unrepeatable(before.flaw or self._attributes.flaw)
        with noting_calls(self._attributes.codes()) as codes:
            returned = self._function(*given, **named)
        if changed := difference(before.values, self._attributes.outside().values):
            _plugrad._note_unrepeatable(f"it changes what it may read: {changed}")
        elif codes or self._attributes.imports_anew():
            for function in functions_of(codes) if codes else ():
                self._attributes.note(function)
            self._set_outside(None, "")
            _plugrad._note_unrepeatable("it called functions, or imported modules, that it was not known to call")
        return returned

    def _call(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        tensors: list[Tensor] = []
        others: list[Any] = []  # the arguments besides tensors
        if len(self._objects) + len(self._attributes) > _ANYTHING_ELSE:
            self.clear()

        def known(value: Any) -> Any:
            others.append(value)
            return self._known(value)

        form = taken_apart((arguments, named), tensors, known)
        texts, outside = self._current_texts(form), self._key_outside()
        lifted = self._places_to_lift(form, texts, tensors, outside)
        has_run = False

        def run(outside: str, *given: Tensor) -> tuple[list[Tensor], int]:
            nonlocal has_run
            has_run = True
            return self._run_on_copies(outside, form, given, lifted, others)

        def numbers(form_of_results: int) -> list[float]:
            values = [named[each] if isinstance(each, str) else arguments[each] for each in lifted]
            return self._lifted_numbers[form_of_results].values(values)

        try:
            results = self._replayed(outside, tensors, joined(texts), run, numbers if lifted else None)
        except NotLiftable:
            self._give_up(texts, _TRIES)
            return self._call(arguments, named)
        except BaseException:
            if lifted and has_run:
                self._give_up(texts, _TRIES)
            raise
        if lifted and has_run and not self._knows(outside, tensors, joined(texts)):
            self._give_up(texts, 1)
        return self._results(*results)

    def _run_on_copies(self, outside: str, form: Any, given: tuple[Tensor, ...], lifted: list[int | str],
                       others: list[Any]) -> tuple[list[Tensor], int]:
        """Calls the function with copies of the lists and dicts among its arguments."""
        positional, named = put_together(form, given)
        before = [self._attributes.text(each) for each in others if type(each) not in PLAIN]
        made = self._run_lifted(outside, lifted, positional, named) if lifted else self._run(outside, *positional, **named)
        self._require_unchanged((positional, named), given, others)
        if before != [self._attributes.text(each) for each in others if type(each) not in PLAIN]:
            _plugrad._note_unrepeatable("it changes an argument")
        return made

    def _current_texts(self, form: Any) -> dict[str, str]:
        """The texts of a call, and what changed since the last one."""
        self._attributes.flaw = ""
        texts = self._texts(form)
        while self._attributes.grew():
            self._set_outside(None, "")
            texts = self._texts(form)
        return texts

    def _places_to_lift(self, form: Any, texts: dict[str, str], tensors: list[Tensor], outside: str) -> list[int | str]:
        """Returns the positions and names of arguments whose numbers differ from call to call; replaces their texts."""
        self._find_changes(texts, outside)
        if not self._lifted or _plugrad._is_recording() or self._knows(outside, tensors, joined(texts)):
            return []
        found = {name: at if at < len(form[0]) else name.removesuffix("=") for at, name in enumerate(texts)
                 if name in self._lifted and is_number(texts[name])}
        without = texts | {name: texts[name].split(" ")[0] + _OF_THE_CALL for name in found}
        if joined(without) not in self._plain:  # a recording for plain numbers comes first
            if len(self._plain) > _MANY:
                self._plain.clear()
            self._plain.add(joined(without))
            return []
        texts.update(without)
        return list(found.values())

    def _find_changes(self, texts: dict[str, str], outside: str) -> None:
        """Lifts numbers that differ from the last call's, if nothing else besides tensors differs."""
        before, self._last = self._last, dict(texts)
        last, self._last_outside = self._last_outside, outside
        if before is None:
            return
        changed = {name for name in {**texts, **before} if before.get(name) != texts.get(name)}
        are_numbers = all(is_number(texts.get(name, "")) and is_number(before.get(name, "")) for name in changed)
        if outside == last and are_numbers and not self._attributes.asks_types():
            self._lifted |= {name for name in changed if self._failures.get(name, 0) < _TRIES}
        if reason := difference(before, texts):
            self._note_change(reason)

    def _give_up(self, texts: dict[str, str], failures: int) -> None:
        """The numbers of this call could not be lifted: the next such call is recorded for plain numbers, and after _TRIES
        failures every call."""
        self._plain.discard(joined(texts))
        for name in [name for name, text in texts.items() if text.endswith(_OF_THE_CALL)]:
            self._failures[name] = self._failures.get(name, 0) + failures
            if self._failures[name] >= _TRIES:
                self._lifted.discard(name)

    def _require_unchanged(self, arguments: Any, given: tuple[Tensor, ...], others: list[Any]) -> None:
        """The function gets copies of the lists and dicts among its arguments, and replays put nothing into the caller's
        lists and dicts. Raises ValueError if the function put a tensor into a copy, or changed another element."""
        found: list[Tensor] = []
        now: list[Any] = []
        taken_apart(arguments, found, now.append)
        known = {id(each) for each in given}
        if any(id(each) not in known for each in found):
            raise ValueError(f"[compile] '{self._name}' puts a tensor into a list or a dict that is an argument, which a "
                             "replay could not do: return that tensor")
        if len(now) != len(others) or any(one is not two and one != two for one, two in zip(now, others)):
            raise ValueError(f"[compile] '{self._name}' changes a list or a dict that is an argument, which a replay could "
                             "not do: return what changes, or keep it in tensors")

    def _results(self, tensors: list[Tensor | None], number: int) -> Any:
        return put_together(self._forms[number], tensors)

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
        if isinstance(value, Place):
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
        self._lifted.clear()
        self._failures.clear()
        self._plain.clear()

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
    values among the attributes that the function reads. Numbers that differ from call to call are operands of a common
    recording, if the function only computes with them. Iterators, sets and other mutable containers, except lists and
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

    PLUGRAD_CAPTURE=off switches recording off; check compares every 16th replay with the function: see docs/compile.md.
    """
    if function is None:
        return functools.partial(compile, name=name, entries=entries, fuse=fuse, memory=memory)
    return Compiled(function, name or str(getattr(function, "__name__", "step")), entries, fuse, memory)
