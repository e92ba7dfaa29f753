# Types that nanobind's stub generator cannot know: the types of operators and of functions that return Python objects.
_plugrad\.__prefix__$:
    from collections.abc import Callable, Iterable, Sequence
    from types import EllipsisType
    from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar
    from numpy import generic
    from numpy.typing import NDArray
    from plugrad._results import MinMax, Quantized, ValuesIndices

    _Derived = TypeVar("_Derived", bound="Tensor")
    _Number: TypeAlias = int | float | bool
    _Operand: TypeAlias = "Tensor | float | generic | Sequence[Any] | NDArray[Any]"
    _Key: TypeAlias = "SupportsIndex | builtins.slice | EllipsisType | None | Tensor | Sequence[Any] | NDArray[Any]"

.*\.Size$:
    class Size(tuple[int, ...]):
        """Extents or strides: a tuple that also equals lists."""

.*\.Tensor\.__(r?)(add|sub|mul|truediv|matmul|floordiv|mod|and|or|xor|lshift|rshift)__$:
    def __\1\2__(self, other: _Operand, /) -> Tensor: ...

.*\.Tensor\.__(r?)divmod__$:
    def __\1divmod__(self, other: _Operand, /) -> tuple[Tensor, Tensor]: ...

.*\.Tensor\.__i(add|sub|mul|truediv|floordiv|mod|and|or|xor|lshift|rshift)__$:
    def __i\1__(self, other: _Operand, /) -> Tensor: ...

.*\.Tensor\.__(r?)pow__$:
    def __\1pow__(self, other: _Operand, modulus: None = None, /) -> Tensor: ...

.*\.Tensor\.__(neg|pos|abs|invert)__$:
    def __\1__(self, /) -> Tensor: ...

.*\.Tensor\.__(eq|ne)__$:
    def __\1__(self, other: object, /) -> Tensor: ...  # type: ignore[override]

.*\.Tensor\.__(lt|le|gt|ge)__$:
    def __\1__(self, other: _Operand, /) -> Tensor: ...

.*\.(Tensor|Value|Size)\.__(hash|int|index|len)__$:
    def __\2__(self, /) -> int: ...

.*\.(Tensor|Value)\.__float__$:
    def __float__(self, /) -> float: ...

.*\.Tensor\.__bool__$:
    def __bool__(self, /) -> bool: ...

.*\.Tensor\.__getitem__$:
    def __getitem__(self, key: _Key, /) -> Tensor: ...

.*\.Tensor\.__setitem__$:
    def __setitem__(self, key: _Key, value: _Operand, /) -> None: ...

.*\.Tensor\.__delitem__$:

.*\.Tensor\.__(array_ufunc|array_function)__$:
    def __\1__(self, *arguments: Any, **named: Any) -> Any:
        \doc

.*\._CompiledStep\.__call__$:
    def __call__(self, *arguments: Any, **named: Any) -> Any: ...

.*\.Tensor\.as_subclass$:
    def as_subclass(self, cls: builtins.type[_Derived]) -> _Derived:
        \doc
    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: tuple[Any, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any: ...

.*\.Tensor\._make_subclass$:
    @staticmethod
    def _make_subclass(cls: builtins.type[_Derived], data: Tensor, require_grad: bool = False) -> _Derived:
        \doc

.*\.Tensor\.item$:
    def item(self) -> _Number:
        \doc

.*\.(Tensor|Neuron|Layer|MLP|Optimizer)\.__reduce__$:
    def __reduce__(self) -> tuple[Any, ...]: ...

.*\.Tensor\.requires_grad_$:
    def requires_grad_(self, on: bool = True) -> Tensor:
        \doc

.*\.Tensor\.requires_grad$:
    @property
    def requires_grad(self) -> bool:
        \doc
    @requires_grad.setter
    def requires_grad(self, on: bool) -> None: ...

.*\.Tensor\.(is_leaf|_is_parameter)$:
    @property
    def \1(self) -> bool:
        \doc

.*\.Tensor\.(max|min)$:
    @overload
    def \1(self, dim: int, keepdim: bool = False) -> ValuesIndices:
        \doc
    @overload
    def \1(self, dim: Sequence[int] | None = ..., keepdim: bool = False, *, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Tensor: ...
    @overload
    def \1(self, other: Tensor) -> Tensor: ...

.*_plugrad\.(max|min)$:
    @overload
    def \1(x: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices:
        \doc
    @overload
    def \1(x: Tensor, dim: Sequence[int] | None = ..., keepdim: bool = False, *, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Tensor: ...
    @overload
    def \1(x: Tensor, other: Tensor) -> Tensor: ...

.*\.Tensor\.(sum|mean|prod)$:
    def \1(self, dim: int | Sequence[int] | None = ..., keepdim: bool = False, *, dtype: Any = None, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Tensor:
        \doc

.*_plugrad\.(sum|mean|prod)$:
    def \1(x: Tensor, dim: int | Sequence[int] | None = ..., keepdim: bool = False, *, dtype: Any = None, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Tensor:
        \doc

.*\.Tensor\.(argmax)$:
    def \1(self, dim: int | Sequence[int] | None = ..., keepdim: bool = False, *, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Tensor:
        \doc

.*_plugrad\.(argmax)$:
    def \1(x: Tensor, dim: int | Sequence[int] | None = ..., keepdim: bool = False, *, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Tensor:
        \doc

.*\.Tensor\.numpy$:
    def numpy(self) -> NDArray[Any]:
        \doc

.*\.Tensor\.__array__$:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        \doc

.*\.Tensor\.(reshape|view|expand)$:
    def \1(self, *shape: int | Sequence[int]) -> Tensor:
        \doc

.*\.Tensor\.permute$:
    def permute(self, *dims: int | Sequence[int]) -> Tensor:
        \doc

.*\.Tensor\.(unique)$:
    @overload
    def \1(self, sorted: bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None) -> Tensor:
        \doc
    @overload
    def \1(self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any: ...

.*_plugrad\.(unique)$:
    @overload
    def \1(x: Tensor, sorted: bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None) -> Tensor:
        \doc
    @overload
    def \1(x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any: ...

.*\.Tensor\.unique_consecutive$:
    @overload
    def unique_consecutive(self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None) -> Tensor:
        \doc
    @overload
    def unique_consecutive(self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any: ...

.*_plugrad\.unique_consecutive$:
    @overload
    def unique_consecutive(x: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None) -> Tensor:
        \doc
    @overload
    def unique_consecutive(x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any: ...

.*\.broadcast_shapes$:
    def broadcast_shapes(a: int | Sequence[int], b: int | Sequence[int]) -> Size:
        \doc

.*_plugrad\.grad$:
    @overload
    def grad(outputs: Tensor | Iterable[Tensor], inputs: Tensor | Iterable[Tensor], grad_outputs: Tensor | Iterable[Tensor | None] | None = None, retain_graph: bool = False, create_graph: bool = False, allow_unused: Literal[False] = False) -> tuple[Tensor, ...]:
        \doc
    @overload
    def grad(outputs: Tensor | Iterable[Tensor], inputs: Tensor | Iterable[Tensor], grad_outputs: Tensor | Iterable[Tensor | None] | None = None, retain_graph: bool = False, create_graph: bool = False, allow_unused: bool = False) -> tuple[Tensor | None, ...]: ...

.*\.Value\.__(r?)(add|sub|mul|truediv)__$:
    def __\1\2__(self, other: Value | float, /) -> Value: ...

.*\.Value\.__pow__$:
    def __pow__(self, exponent: float, modulus: None = None, /) -> Value: ...

.*\.Value\.__rpow__$:

.*\.Value\.__(neg|pos)__$:
    def __\1__(self, /) -> Value: ...

.*\.Value\.(relu|tanh|exp|log|cpu)$:
    def \1(self) -> Value:
        \doc

.*\.Value\.to$:
    def to(self, device: Device | str | None) -> Value:
        \doc

.*\.Value\.cuda$:
    def cuda(self, index: int = 0) -> Value:
        \doc

.*\.Value\._prev$:
    @property
    def _prev(self) -> set[Value]:
        \doc

.*\.(Neuron|Layer|MLP)\.parameters$:
    def parameters(self) -> list[Value]:
        \doc

.*\.Neuron\.__call__$:
    def __call__(self, x: Sequence[Value | float] | Value | float) -> Value:
        \doc

.*\.(Layer|MLP)\.__call__$:
    def __call__(self, x: Sequence[Value | float] | Value | float) -> Any:
        \doc

.*\.Neuron\.w$:
    @property
    def w(self) -> list[Value]:
        \doc

.*\.Neuron\.b$:
    @property
    def b(self) -> Value:
        \doc

.*\.Layer\.neurons$:
    @property
    def neurons(self) -> list[Neuron]:
        \doc

.*\.MLP\.layers$:
    @property
    def layers(self) -> list[Layer]:
        \doc

.*\.Optimizer\.state_dict$:
    def state_dict(self) -> dict[str, Tensor]:
        \doc

.*\.generator_state$:
    def generator_state(device: Device | str | None = None) -> tuple[int, int]:
        \doc

.*\._(vjp|jvp|jacobian|hessian|apply_function)$:
    def _\1(*arguments: Any) -> Any: ...

.*\._linear$:
    def _linear(*arguments: Any) -> tuple[Tensor, Tensor | None]: ...

.*\._fashion_mnist$:
    def _fashion_mnist(*arguments: Any) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]: ...

.*\._cifar$:
    def _cifar(*arguments: Any) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]: ...

.*\._moons$:
    def _moons(*arguments: Any) -> tuple[Tensor, Tensor]: ...

.*\.Tensor\.nonzero$:
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        \doc
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...

.*_plugrad\.nonzero$:
    @overload
    def nonzero(x: Tensor, *, as_tuple: Literal[False] = False) -> Tensor:
        \doc
    @overload
    def nonzero(x: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...

.*\.Tensor\.(index_put_?)$:
    def \1(self, indices: _Key, values: _Operand, accumulate: bool = False) -> Tensor:
        \doc

.*_plugrad\.index_put$:
    def index_put(x: Tensor, indices: _Key, values: _Operand, accumulate: bool = False) -> Tensor:
        \doc

# Classes with buffers have these methods from Python 3.12 on.
.*\.Tensor\.__buffer__$:
    def __buffer__(self, flags: int, /) -> memoryview: ...

.*\.Tensor\.__release_buffer__$:
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...
