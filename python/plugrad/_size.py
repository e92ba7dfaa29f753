"""The number of elements of a tensor."""

from math import prod

from ._plugrad import Size


class Count(int):
    """The number of elements of a tensor: `t.size`, as in NumPy. `t.size()` is the shape and `t.size(0)` an extent, as in
    PyTorch."""

    _shape: Size

    def __new__(cls, shape: Size) -> "Count":
        made = super().__new__(cls, prod(shape))
        made._shape = shape
        return made

    def __call__(self, dim: int | None = None) -> "Size | int":
        return self._shape if dim is None else self._shape[dim]

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)
