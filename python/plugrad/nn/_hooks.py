"""Hooks of modules: their handles, and the gradients of a call for backward hooks."""

import itertools
from typing import Any

from .. import _plugrad
from .._function import Function
from .._plugrad import Tensor

__all__ = ["HookHandle", "Watch"]


class HookHandle:
    """The handle of a hook: it removes the hook from the module."""

    _numbers = itertools.count()

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks, self._id = hooks, next(self._numbers)
        hooks[self._id] = hook
        _plugrad._note_hook()

    def remove(self) -> None:
        """Removes the hook from later calls of the module. Does nothing if the hook is removed already."""
        if self._hooks.pop(self._id, None) is not None:
            _plugrad._note_hook()


class _Seen(Function):
    """Returns views of the tensors. Passes their gradients through a function that may replace the gradients."""

    @staticmethod
    def forward(ctx: Any, through: Any, *tensors: Tensor) -> Any:
        ctx.through = through
        ctx.set_materialize_grads(False)
        return tuple(each.view_as(each) for each in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.through(grads))


class Watch:
    """A call of a module with backward hooks."""

    def __init__(self, module: Any, hooks: list[Any]) -> None:
        self._module, self._hooks = module, hooks
        self._asked: list[int] = []  # the positions of arguments with requires_grad
        self._count = 0
        self._results: tuple[Any, ...] = ()

    def before(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        self._count = len(arguments)
        self._asked = [i for i, each in enumerate(arguments) if isinstance(each, Tensor) and each.requires_grad]
        if not self._asked or not _plugrad.grad_enabled():
            self._asked = []
            return arguments
        seen = list(arguments)
        for i, each in zip(self._asked, _Seen.apply(self._of_arguments, *(arguments[i] for i in self._asked))):
            seen[i] = each
        return tuple(seen)

    def after(self, out: Any) -> Any:
        results = out if isinstance(out, tuple) else (out,)
        if not all(isinstance(each, Tensor) for each in results) or not any(each.requires_grad for each in results):
            return out
        seen = _Seen.apply(self._of_results, *results)
        return seen if isinstance(out, tuple) else seen[0]

    def _of_results(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        self._results = grads
        if not self._asked:
            self._call((None,) * self._count)
        return grads

    def _of_arguments(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        whole: list[Any] = [None] * self._count
        for i, grad in zip(self._asked, grads):
            whole[i] = grad
        whole = list(self._call(tuple(whole)))
        return tuple(whole[i] for i in self._asked)

    def _call(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self._hooks:
            replaced = hook(self._module, grads, self._results)
            if replaced is not None:
                grads = replaced if isinstance(replaced, tuple) else (replaced,)
        return grads
