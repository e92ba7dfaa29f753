"""Functions with gradients of their own."""

from typing import Any, NoReturn

from . import _plugrad
from ._plugrad import Tensor


class FunctionContext:
    """The data kept by forward for backward. Programs may set further attributes, but not to results: the results and the
    context would keep each other alive."""

    needs_input_grad: tuple[bool, ...]
    _saved: tuple[Tensor | None, ...] = ()
    _constants: tuple[Tensor, ...] = ()
    _materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors. backward raises ValueError if a kept tensor was changed in place since. Save only arguments and
        results: for intermediate tensors of forward, further derivatives do not know how they were computed."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors kept by save_for_backward, while backward runs."""
        return self._saved

    def mark_non_differentiable(self, *results: Tensor) -> None:
        """These results have no gradient. Nor have integers and bools."""
        self._constants = results

    def set_materialize_grads(self, value: bool) -> None:
        """False: if no gradient reaches a result, its gradient is None instead of zeros."""
        self._materialize = value

    def mark_dirty(self, *tensors: Tensor) -> NoReturn:
        """Raises NotImplementedError: forward may not write into its arguments."""
        raise NotImplementedError("[mark_dirty] forward may not write into its arguments: return a new tensor")


class Function:
    """A function with a gradient by the program. A derived class has static methods forward and backward, and is called by
    `apply`; no object of it is made.

    >>> class Cube(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         x, = ctx.saved_tensors
    ...         return grad * x * x * 3
    >>> y = Cube.apply(Tensor([2.0]))

    forward receives a context and the arguments, and returns a tensor or a tuple; its ops are not recorded. backward
    receives the context and the gradient of each result, and returns a gradient, or None, for each argument. It is
    recorded where create_graph is set: if it consists of ops, the function has derivatives of all orders. A class with
    `setup_context(ctx, inputs, output)` has a forward without the context.
    """

    @staticmethod
    def forward(*args: Any) -> Any:
        raise NotImplementedError("[Function] a derived class defines forward")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("[Function] a derived class defines backward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise NotImplementedError("[Function] this class has a context in forward")

    @classmethod
    def _forward(cls, ctx: FunctionContext, args: tuple[Any, ...]) -> Any:
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls forward, and records the call if an argument requires a gradient."""
        return _plugrad._apply_function(cls, FunctionContext(), args)
