"""Functions of functions, by the names of torch.func: vmap, grad, vjp, jvp, jacobians, functional calls of modules.

Each takes a function of tensors, or of nested lists, tuples and dicts of tensors, and returns another such function. They
nest in any order, and compile. A function that is transformed may read any tensor from outside, but not write into it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeAlias

from . import _plugrad
from ._functional_call import functional_call as functional_call, stack_module_state as stack_module_state
from ._forms import Place, put_together, taken_apart
from ._modes import _Mode
from ._plugrad import Tensor

_Function: TypeAlias = Callable[..., Any]


# --- Nested values.

def _flat(value: Any, name: str, what: str) -> tuple[list[Tensor], Any]:
    """The tensors in a nested value, and its form."""
    tensors: list[Tensor] = []

    def refuse(other: Any) -> Any:
        raise TypeError(f"[{name}] {what} holds a {type(other).__name__}: expected tensors, in lists, tuples and dicts")

    return tensors, taken_apart(value, tensors, refuse)


def _tensors_in(value: Any) -> tuple[list[Tensor], Any]:
    """The same for arguments, which may hold other values."""
    tensors: list[Tensor] = []
    return tensors, taken_apart(value, tensors, lambda other: other)


def _matched(value: Any, form: Any, name: str, what: str) -> list[Tensor]:
    """The tensors of a value of this form, in the form's order."""
    found: dict[int, Tensor] = {}
    _match(value, form, found, f"[{name}] {what}")
    return [found[at] for at in sorted(found)]


def _match(value: Any, form: Any, found: dict[int, Tensor], what: str) -> None:
    if isinstance(form, Place):
        if not isinstance(value, Tensor):
            raise TypeError(f"{what} has a {type(value).__name__} in place of a tensor")
        found[form.at] = value
        return
    fits = isinstance(value, Mapping if isinstance(form, Mapping) else list | tuple) and len(value) == len(form)
    if not fits or (isinstance(form, Mapping) and value.keys() != form.keys()):
        raise ValueError(f"{what} has another form: give the same lists, tuples and dicts, with a tensor for each tensor")
    for key in form if isinstance(form, Mapping) else range(len(form)):
        _match(value[key], form[key], found, what)


class _recorded(_Mode):
    """Records the function of handles, also what compiled steps in it do."""

    _guard = _plugrad._Recorded


def _axes_of(axes: Any, value: Any, name: str) -> list[int | None]:
    """The axis for each tensor of a nested value; `axes` has the same form, or is a single number for a part of it."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(_tensors_in(value)[0])
    keys: Sequence[Any]
    if isinstance(value, Mapping) and isinstance(axes, Mapping) and axes.keys() == value.keys():
        keys = list(value)
    elif isinstance(value, list | tuple) and isinstance(axes, list | tuple) and len(axes) == len(value):
        keys = range(len(value))
    else:
        raise ValueError(f"[{name}] the axes {axes!r} do not fit the form of the {type(value).__name__} that they are for: "
                         "give a number or None for each of its parts, or one for all of it")
    return [axis for key in keys for axis in _axes_of(axes[key], value[key], name)]


# --- vmap.

@contextmanager
def _closing(transform: Any) -> Iterator[Any]:
    try:
        yield transform
    finally:
        transform.close()


def vmap(func: _Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
         *, chunk_size: int | None = None) -> _Function:
    """Returns a function that applies func to each example of a batch, at once.

    in_dims: the axis of each argument that holds the examples, or None for an argument that all examples share; for a
    nested argument also a nested value. out_dims: the axis of each result that will hold them. Keyword arguments have their
    examples along axis 0. randomness: what random functions do in func: "error", "different" numbers for each example, or
    the "same" for all. chunk_size: computes so many examples at once, to save memory.

    func is called once, with tensors of the shape of one example; an element has no single value there, so item() and
    `if x > 0` raise ValueError. Gradients pass through. Raises ValueError for axes that do not fit.
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"[vmap] chunk_size is {chunk_size}: give a number above 0, or None")

    @wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = _axes_of(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, "vmap")
        given, form = _tensors_in((args, kwargs))
        axes += [0] * (len(given) - len(axes))
        size = _size_of(given, axes)
        if chunk_size is None or size <= chunk_size:
            return _mapped(func, form, given, axes, size, out_dims, randomness)
        return _in_chunks(func, form, given, axes, size, out_dims, randomness, chunk_size)

    return mapped


def _size_of(given: list[Tensor], axes: list[int | None]) -> int:
    sizes = [x.shape[axis] for x, axis in zip(given, axes, strict=True) if axis is not None and -x.ndim <= axis < x.ndim]
    wrong = [(x.shape, axis) for x, axis in zip(given, axes, strict=True)
             if axis is not None and not -x.ndim <= axis < x.ndim]
    if wrong:
        raise ValueError(f"[vmap] in_dims has {wrong[0][1]} for an argument of shape {tuple(wrong[0][0])}: give one of its "
                         "axes, or None if all examples share it")
    if not sizes:
        raise ValueError("[vmap] no argument has examples: in_dims must give an axis of at least one tensor")
    if len(set(sizes)) > 1:
        raise ValueError(f"[vmap] the arguments have {sorted(set(sizes))} examples along their axes in in_dims: all must "
                         "have the same number")
    return sizes[0]


def _mapped(func: _Function, form: Any, given: list[Tensor], axes: list[int | None], size: int, out_dims: Any,
            randomness: str) -> Any:
    with _closing(_plugrad._Examples(size, randomness)) as examples:
        inside = [x if axis is None else examples.wrap(x, axis) for x, axis in zip(given, axes, strict=True)]
        args, kwargs = put_together(form, inside)
        made = func(*args, **kwargs)
        results, result_form = _flat(made, "vmap", "the function's result")
        places = _axes_of(out_dims, made, "vmap")
        if None in places:
            raise ValueError("[vmap] out_dims has None: give the axis of each result for the examples")
        return put_together(result_form, [examples.unwrap(y, axis) for y, axis in zip(results, places, strict=True)])


def _in_chunks(func: _Function, form: Any, given: list[Tensor], axes: list[int | None], size: int, out_dims: Any,
               randomness: str, chunk_size: int) -> Any:
    parts: list[list[Tensor]] = []
    places: list[int | None] = []
    form_of_result: Any = None
    states = {x.device: _plugrad.generator_state(x.device) for x in given} if randomness == "same" else {}
    for start in range(0, size, chunk_size):
        for device, state in states.items():
            _plugrad.set_generator_state(state, device)
        count = min(chunk_size, size - start)
        chunk = [x if axis is None else x.narrow(axis, start, count) for x, axis in zip(given, axes, strict=True)]
        made = _mapped(func, form, chunk, axes, count, out_dims, randomness)
        results, form_of_result = _flat(made, "vmap", "the function's result")
        parts.append(results)
        places = _axes_of(out_dims, made, "vmap")
    joined = [_plugrad.cat(list(each), axis or 0) for each, axis in zip(zip(*parts, strict=True), places, strict=True)]
    return put_together(form_of_result, joined)


# --- Reverse mode.

def _picked(argnums: int | Sequence[int], args: tuple[Any, ...], name: str) -> Any:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for each in numbers:
        if not -len(args) <= each < len(args):
            raise ValueError(f"[{name}] argnums has {each}, and the call {len(args)} positional arguments: give the number "
                             "of one of them")
    if len({each % len(args) for each in numbers}) < len(numbers):
        raise ValueError(f"[{name}] argnums is {numbers}: give each argument once")
    picked = tuple(args[each] for each in numbers)
    return picked[0] if isinstance(argnums, int) else picked


def _with(args: tuple[Any, ...], argnums: int | Sequence[int], values: Any) -> tuple[Any, ...]:
    changed = list(args)
    if isinstance(argnums, int):
        changed[argnums] = values
    else:
        for number, value in zip(argnums, values, strict=True):
            changed[number] = value
    return tuple(changed)


def _plain(value: Any, is_inner: bool) -> Any:
    """Without the graph of the handles, unless an outer function needs that."""
    tensors, form = _tensors_in(value)
    return value if is_inner else put_together(form, [_plugrad._ungraphed(x) for x in tensors])


def _split(made: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return made, None
    if not isinstance(made, tuple) or len(made) != 2:
        raise ValueError(f"[{name}] has_aux is set, but the function returned no pair: expected (result, aux)")
    return made


def grad_and_value(func: _Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> _Function:
    """Returns a function that returns (gradients, value): the gradients of func's result, one number, for the arguments
    `argnums`, in their form. has_aux: func returns (value, aux), and the result is (gradients, (value, aux))."""

    @wraps(func)
    def with_gradients(*args: Any, **kwargs: Any) -> Any:
        given, form = _flat(_picked(argnums, args, "grad"), "grad", "an argument of argnums")
        handles = _plugrad._wanted(given)
        with _recorded():
            made = func(*_with(args, argnums, put_together(form, handles)), **kwargs)
        value, aux = _split(made, has_aux, "grad")
        if not isinstance(value, Tensor) or value.numel() != 1 or value.ndim:
            what = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
            raise ValueError(f"[grad] the function returned {what}: expected a number, a tensor of shape (). For other "
                             "results there are vjp and jacrev")
        is_inner = _plugrad._has_outer_graph([value], handles)
        found = _gradients([value], handles, None, is_inner)
        results = put_together(form, found)
        plain = _plain(value, is_inner)
        return results, ((plain, _plain(aux, is_inner)) if has_aux else plain)

    return with_gradients


def _gradients(outputs: list[Tensor], handles: list[Tensor], seeds: list[Tensor] | None, creates_graph: bool,
               retains: bool = False) -> list[Tensor]:
    roots = [i for i, each in enumerate(outputs) if each.requires_grad]
    if not roots:
        return [_plugrad.zeros_like(x) for x in handles]
    found = _plugrad.grad([outputs[i] for i in roots], handles, None if seeds is None else [seeds[i] for i in roots],
                          retain_graph=retains, create_graph=creates_graph, allow_unused=True)
    return [_plugrad.zeros_like(x) if each is None else each for each, x in zip(found, handles, strict=True)]


def grad(func: _Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> _Function:
    """Returns a function that returns the gradients of func's result, one number, for the arguments `argnums`.

    has_aux: func returns (value, aux), and the result is (gradients, aux).
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def gradients(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradients


def vjp(func: _Function, *primals: Any, has_aux: bool = False) -> Any:
    """Returns (results, pullback): func's results at the primals, and a function of as many nested values as the results,
    which returns a tuple of the gradients of their products for each primal. has_aux: func returns (results, aux), and this
    function (results, pullback, aux)."""
    given, form = _flat(primals, "vjp", "a primal")
    handles = _plugrad._wanted(given)
    with _recorded():
        made = func(*put_together(form, handles))
    results, aux = _split(made, has_aux, "vjp")
    outputs, result_form = _flat(results, "vjp", "the function's result")
    is_inner = _plugrad._has_outer_graph(outputs, handles)

    def pullback(*cotangents: Any) -> Any:
        value = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds = _matched(value, result_form, "vjp", "the cotangent")
        again = _plugrad.grad_enabled() and (is_inner or any(each.requires_grad for each in seeds))
        return put_together(form, _gradients(outputs, handles, seeds, again, retains=True))

    plain = put_together(result_form, outputs if is_inner else [_plugrad._ungraphed(each) for each in outputs])
    return (plain, pullback, _plain(aux, is_inner)) if has_aux else (plain, pullback)


# --- Forward mode.

def jvp(func: _Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """Returns (results, their derivatives along the tangents), in one pass in forward mode.

    primals, tangents: tuples of the same form, one for each argument. strict: accepted for torch.func's sake; a result that
    depends on no primal has a tangent of zeros. has_aux: func returns (results, aux), and this function also aux.
    """
    values, form = _flat(primals, "jvp", "a primal")
    directions = _matched(tangents, form, "jvp", "the tuple of tangents")
    with _closing(_plugrad._Tangents()) as forward:
        pairs = [forward.pair(x, t) for x, t in zip(values, directions, strict=True)]
        made = func(*put_together(form, pairs))
        results, aux = _split(made, has_aux, "jvp")
        outputs, result_form = _flat(results, "jvp", "the function's result")
        at = put_together(result_form, [forward.primal(y) for y in outputs])
        along = put_together(result_form, [forward.tangent(y) for y in outputs])
        if not has_aux:
            return at, along
        extra, extra_form = _tensors_in(aux)
        return at, along, put_together(extra_form, [forward.primal(y) for y in extra])


# --- Jacobians.

def _basis(tensors: list[Tensor]) -> list[Tensor]:
    """For each tensor, its part of the rows of an identity matrix over the elements of all of them: (total, *shape)."""
    total = sum(x.numel() for x in tensors)
    parts, start = [], 0
    for x in tensors:
        rows = _plugrad.zeros((total, x.numel()), dtype=x.dtype, device=x.device)
        ones = _plugrad.eye(x.numel(), dtype=x.dtype, device=x.device)
        parts.append(_plugrad.cat([rows[:start], ones, rows[start + x.numel():]]).reshape((total, *x.shape)))
        start += x.numel()
    return parts


def _divided(rows: Tensor, like: list[Tensor], axis: int) -> list[Tensor]:
    """The parts of an axis of all elements, each in the shape of its tensor."""
    parts, start = [], 0
    for x in like:
        part = rows.narrow(axis, start, x.numel())
        start += x.numel()
        parts.append(part.reshape((*part.shape[:axis], *x.shape, *part.shape[axis + 1:])))
    return parts


def _require_floating(results: list[Tensor], name: str) -> None:
    for each in results:
        if not each.dtype.is_floating_point:
            raise ValueError(f"[{name}] a result is {each.dtype}, which has no derivatives: return it as aux, or cast it")


def jacrev(func: _Function, argnums: int | Sequence[int] = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           ) -> _Function:
    """Returns a function that returns func's Jacobian for the arguments `argnums`, in reverse mode: for each result, in the
    results' form, and each argument, in theirs, a tensor of shape (*result's, *argument's). Best for few results.

    chunk_size: how many rows are computed at once. has_aux: func returns (results, aux), and the result is (Jacobian, aux).
    """

    @wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        def of_picked(picked: Any) -> Any:
            return func(*_with(args, argnums, picked), **kwargs)

        results, pullback, *aux = vjp(of_picked, _picked(argnums, args, "jacrev"), has_aux=has_aux)
        outputs, form = _flat(results, "jacrev", "the function's result")
        _require_floating(outputs, "jacrev")
        if not sum(y.numel() for y in outputs):
            inputs, input_form = _tensors_in(_picked(argnums, args, "jacrev"))
            empty = [put_together(input_form, [y.new_zeros((*y.shape, *x.shape)) for x in inputs]) for y in outputs]
            return (put_together(form, empty), aux[0]) if has_aux else put_together(form, empty)
        rows = vmap(lambda *seeds: pullback(put_together(form, list(seeds)))[0], chunk_size=chunk_size)(*_basis(outputs))
        columns, column_form = _tensors_in(rows)
        by_output = zip(*(_divided(each, outputs, 0) for each in columns), strict=True)
        made = put_together(form, [put_together(column_form, list(each)) for each in by_output])
        return (made, aux[0]) if has_aux else made

    return jacobian


def jacfwd(func: _Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, *, chunk_size: int | None = None,
           randomness: str = "error") -> _Function:
    """The same as jacrev, in forward mode. Best for few elements in the arguments."""

    @wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        picked = _picked(argnums, args, "jacfwd")
        inputs, form = _flat(picked, "jacfwd", "an argument of argnums")

        def along(*tangents: Any) -> Any:
            def of_picked(value: Any) -> Any:
                return func(*_with(args, argnums, value), **kwargs)

            made = jvp(of_picked, (picked,), (put_together(form, list(tangents)),), has_aux=has_aux)
            return (made[1], made[2]) if has_aux else (made[1], ())

        if not sum(x.numel() for x in inputs):
            results, extra = _split(func(*args, **kwargs), has_aux, "jacfwd")
            outputs, output_form = _flat(results, "jacfwd", "the function's result")
            empty = [put_together(form, [y.new_zeros((*y.shape, *x.shape)) for x in inputs]) for y in outputs]
            return (put_together(output_form, empty), extra) if has_aux else put_together(output_form, empty)
        columns, aux = vmap(along, randomness=randomness, chunk_size=chunk_size)(*_basis(inputs))
        outputs, output_form = _tensors_in(columns)
        _require_floating(outputs, "jacfwd")
        made = [put_together(form, _divided(each.movedim(0, -1), inputs, each.ndim - 1)) for each in outputs]
        result = put_together(output_form, made)
        return (result, put_together(_tensors_in(aux)[1], [x[0] for x in _tensors_in(aux)[0]])) if has_aux else result

    return jacobian


def hessian(func: _Function, argnums: int | Sequence[int] = 0) -> _Function:
    """Returns a function that returns the second derivatives of func's results for the arguments `argnums`: forward mode
    over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)
