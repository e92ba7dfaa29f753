"""`plugrad.backends()` returns a record for each considered plugin. Its attributes are settings of torch.backends that
programs change before they begin. Plugins choose their kernels themselves: most settings are kept without an effect.
"""

import sys
import types
from typing import Any

from . import _plugrad


class _Flags(types.ModuleType):
    """Settings of exactly these names."""

    def __init__(self, name: str, **flags: Any) -> None:
        super().__init__(f"{__name__}.{name}")
        vars(self).update(flags)
        self._known = frozenset(flags)
        sys.modules[self.__name__] = self

    def __setattr__(self, name: str, value: Any) -> None:
        known = vars(self).get("_known")
        if known is not None and name not in known and not name.startswith("__"):
            raise AttributeError(f"[{self.__name__.partition('.')[2]}] there is no setting '{name}'; there are: "
                                 f"{', '.join(sorted(known))}")
        super().__setattr__(name, value)


class _Matmul(_Flags):
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "allow_tf32" and "_known" in vars(self):
            _plugrad.set_tf32(bool(value))


class _Platform(_Flags):
    """The members of torch.backends for a kind of device."""

    def is_available(self) -> bool:
        """Whether a plugin has such a device."""
        return any(name.startswith(f"{self.__name__.rpartition('.')[2]}:") for name in _plugrad.devices())

    is_built = is_available


class _Backends(types.ModuleType):
    def __call__(self) -> Any:
        """Returns a record for each considered file, in search order, with the reason for each refused file."""
        return _plugrad.backends()


cudnn = _Flags("cudnn", benchmark=False, deterministic=False, enabled=True, allow_tf32=True)
cuda = _Platform("cuda", matmul=_Matmul("cuda.matmul", allow_tf32=False,
                                        allow_bf16_reduced_precision_reduction=True,
                                        allow_fp16_reduced_precision_reduction=True))
mps = _Platform("mps")
sys.modules[__name__].__class__ = _Backends
