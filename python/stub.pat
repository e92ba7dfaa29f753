# Types that nanobind's stub generator cannot know: those of operators, and of functions that return Python objects.
_plugrad\.__prefix__$:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal, TypeAlias
    from numpy.typing import NDArray
    from plugrad._results import MinMax, ValuesIndices

    # Methods of Tensor hide Python's float and bool inside the class.
    _Bool: TypeAlias = bool
    _Float: TypeAlias = float
    _Number: TypeAlias = int | float | bool
    _Operand: TypeAlias = "Tensor | float | Sequence[Any] | NDArray[Any]"
    _Key: TypeAlias = "int | slice | None | Tensor | tuple[Any, ...] | Any"

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
    def __float__(self, /) -> _Float: ...

.*\.Tensor\.__bool__$:
    def __bool__(self, /) -> _Bool: ...

.*\.Tensor\.__getitem__$:
    def __getitem__(self, key: _Key, /) -> Tensor: ...

.*\.Tensor\.__setitem__$:
    def __setitem__(self, key: _Key, value: _Operand, /) -> None: ...

.*\.Tensor\.__delitem__$:

.*\.Tensor\.copy_$:
    def copy_(self, source: _Operand) -> Tensor:
        \doc

.*\.Tensor\.fill_$:
    def fill_(self, value: _Float) -> Tensor:
        \doc

.*\.Tensor\.add_$:
    def add_(self, other: Tensor, alpha: _Float = 1) -> Tensor:
        \doc

.*\.Tensor\.mul_$:
    def mul_(self, factor: _Float) -> Tensor:
        \doc

.*\.Tensor\.__(array_ufunc|array_function)__$:
    def __\1__(self, *arguments: Any, **named: Any) -> Any:
        \doc

.*\.Tensor\.item$:
    def item(self) -> _Number:
        \doc

.*\.(Tensor|Neuron|Layer|MLP|SGD|Adam|AdamW)\.__reduce__$:
    def __reduce__(self) -> tuple[Any, ...]: ...

.*\.Tensor\.requires_grad_$:
    def requires_grad_(self, on: _Bool = True) -> Tensor:
        \doc

.*\.Tensor\.requires_grad$:
    @property
    def requires_grad(self) -> _Bool:
        \doc
    @requires_grad.setter
    def requires_grad(self, on: _Bool) -> None: ...

.*\.Tensor\.(is_leaf|_is_parameter)$:
    @property
    def \1(self) -> _Bool:
        \doc

.*\.Tensor\.(max|min)$:
    @overload
    def \1(self, dim: int, keepdim: _Bool = False) -> ValuesIndices:
        \doc
    @overload
    def \1(self, dim: Sequence[int] | None = ..., keepdim: _Bool = False, *, axis: int | Sequence[int] | None = ..., keepdims: _Bool = False) -> Tensor: ...
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
    def \1(self, dim: int | Sequence[int] | None = ..., keepdim: _Bool = False, *, dtype: Any = None, axis: int | Sequence[int] | None = ..., keepdims: _Bool = False) -> Tensor:
        \doc

.*_plugrad\.(sum|mean|prod)$:
    def \1(x: Tensor, dim: int | Sequence[int] | None = ..., keepdim: bool = False, *, dtype: Any = None, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Tensor:
        \doc

.*\.Tensor\.(argmax)$:
    def \1(self, dim: int | Sequence[int] | None = ..., keepdim: _Bool = False, *, axis: int | Sequence[int] | None = ..., keepdims: _Bool = False) -> Tensor:
        \doc

.*_plugrad\.(argmax)$:
    def \1(x: Tensor, dim: int | Sequence[int] | None = ..., keepdim: bool = False, *, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Tensor:
        \doc

.*\.Tensor\.numpy$:
    def numpy(self) -> NDArray[Any]:
        \doc

.*\.Tensor\.__array__$:
    def __array__(self, dtype: Any = None, copy: _Bool | None = None) -> NDArray[Any]:
        \doc

.*\.Tensor\.(unique|unique_consecutive)$:
    def \1(self, *arguments: Any, **named: Any) -> Any:
        \doc

.*_plugrad\.(unique|unique_consecutive)$:
    def \1(x: Tensor, *arguments: Any, **named: Any) -> Any:
        \doc

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

.*\.(_linear|_fashion_mnist|_moons)$:
    def \1(*arguments: Any) -> Any: ...
