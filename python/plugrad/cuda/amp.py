"""plugrad.amp for CUDA, with the order of arguments of torch.cuda.amp."""

from typing import Any

from .. import amp
from ..amp import GradScaler

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    __doc__ = amp.autocast.__doc__

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype or "f16", enabled, cache_enabled)

    def _recreate_cm(self) -> "autocast":
        _, dtype, enabled, cache = self._given
        return type(self)(enabled, dtype, cache)
