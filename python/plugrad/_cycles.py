"""Warnings of cycles of references through the graph. Python's collector does not see the graph and cannot free them."""

import gc
import types
import warnings
from typing import Any

from ._plugrad import Tensor

_MOST = 1000  # objects to visit
_OPAQUE = (types.ModuleType, type, str, bytes, int, float)


def _referents(x: Any) -> list[Any]:
    """Returns the objects kept alive by x; for a function its closure and defaults, not its module's names."""
    if isinstance(x, types.FunctionType):
        cells = [cell.cell_contents for cell in x.__closure__ or () if _is_filled(cell)]
        return [*cells, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    return gc.get_referents(x)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def refers_to(x: Any, tensor: Tensor) -> bool:
    """Returns whether references from x reach the tensor within the first _MOST objects."""
    seen, level = {id(x)}, [x]
    while level and len(seen) < _MOST:
        reached = [each for x in level for each in _referents(x) if not isinstance(each, _OPAQUE)]
        level = []
        for each in reached:
            if isinstance(each, Tensor):
                if each.is_same(tensor):
                    return True
            elif id(each) not in seen:
                seen.add(id(each))
                level.append(each)
    return False


def note_hook(hook: Any, tensor: Tensor) -> None:
    """Warns if the hook keeps its own tensor alive."""
    if refers_to(hook, tensor):
        warnings.warn("[register_hook] the hook refers to its own tensor: they keep each other alive, also once the program "
                      "has dropped both. Use the hook's argument, or a weakref.ref of what holds the tensor", stacklevel=2)


def note_graph() -> None:
    """Warns that gradients with graphs refer to their tensors."""
    warnings.warn("[backward] with create_graph=True each gradient has a graph that leads back to its tensor: they keep "
                  "each other alive until the gradient is set to None. plugrad.autograd.grad returns gradients without "
                  "storing them", stacklevel=2)
